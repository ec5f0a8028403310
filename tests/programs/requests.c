// SPDX-License-Identifier: MIT
/*
 * Requests that begin in one thread and end in another, several at once: each 20th, whose path is
 * "/slow/N", takes 100 ms, all others, "/fast/N", 2 ms. Their objects are used again. With
 * "-cancel" each 10th ends without request_end(); with "-leak" they do nothing but begin.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORKERS 3
#define ROOM	64

struct text {
	size_t len;
	char *data;
};

struct request {
	struct {
		short state;
		int number;
	} at;
	char method[8];
	struct text path; /* without a NUL: what follows it is "GARBAGE" */
	const struct request *before;
	char hostile[40];
};

static struct request *queue[ROOM];
static unsigned int begun, taken;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;

__attribute__((noipa)) static void request_begin(struct request *r, int number)
{
	r->at.number = number;
}

__attribute__((noipa)) static int request_end(int worker, struct request *r)
{
	return r->at.number % 20 == 7 ? -worker - 1 : worker;
}

/* The third argument is in the register of a second one. */
__attribute__((noipa)) static long answer(const struct request *r, double weight, long size)
{
	usleep(r->at.number % 20 == 7 ? 100000 : 2000);
	return size + (long)weight;
}

static void *work(void *arg)
{
	int worker = (int)(long)arg;

	for (;;) {
		struct request *r;

		pthread_mutex_lock(&lock);
		while (taken == begun)
			pthread_cond_wait(&more, &lock);
		r = queue[taken++ % ROOM];
		pthread_mutex_unlock(&lock);
		answer(r, 0.5, 100 + r->at.number);
		request_end(worker, r);
		free(r->path.data);
		free(r);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int cancels = argc > 1 && !strcmp(argv[1], "-cancel");
	pthread_t thread;

	for (int n = 0; argc > 1 && !strcmp(argv[1], "-leak"); n++) {
		static struct request r;

		if (!n)
			printf("pid %d\n", (int)getpid());
		fflush(stdout);
		request_begin(&r, n);
		if (n % 100 == 0)
			usleep(1000);
	}
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	for (long i = 0; i < WORKERS; i++)
		pthread_create(&thread, NULL, work, (void *)i);
	for (int n = 0;; n++) {
		struct request *r = calloc(1, sizeof(*r));
		char path[64];

		strcpy(r->method, n % 2 ? "GET" : "PUT");
		snprintf(path, sizeof(path), "/%s/%dGARBAGE", n % 20 == 7 ? "slow" : "fast", n);
		r->path.data = strdup(path);
		r->path.len = strlen(path) - strlen("GARBAGE");
		strcpy(r->hostile, "a\033[31mb\"<b>&\xff\xe2\x80\xae\n\xc3\xa9");
		request_begin(r, n);
		if (cancels && n % 10 == 3) {
			free(r->path.data);
			free(r);
			continue;
		}
		pthread_mutex_lock(&lock);
		queue[begun++ % ROOM] = r;
		pthread_cond_signal(&more);
		pthread_mutex_unlock(&lock);
		usleep(8000);
	}
}
