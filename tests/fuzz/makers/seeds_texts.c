// SPDX-License-Identifier: MIT
/* Texts, and a trace of every kind of event. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "seeds.h"
#include "trace/fxt.h"
#include "util/fs.h"

static const struct {
	const char *fuzzer, *name, *text;
} texts[] = {
	{"proc", "maps",
	 "0" /* % 6 == 0 */
	 "00400000-00401000 r-xp 00001000 08:01 1234 /usr/bin/a\\012b (deleted)\n"
	 "7f0000000000-7f0000002000 rw-p 00000000 00:00 0 \n"
	 "7ffc00000000-7ffc00021000 rwxp 00000000 00:00 0 [stack]\n"},
	{"proc", "mountinfo",
	 "1"
	 "25 1 0:22 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
	 "40 1 0:44 / / rw - overlay overlay "
	 "rw,lowerdir=/l1\\040x:/l2,upperdir=/u,workdir=/w\n"},
	{"proc", "status",
	 "2"
	 "Name:\ta\\nb\nState:\tS (sleeping)\nTgid:\t17\nTracerPid:\t0\nNSpid:\t17\t1\n"
	 "VmSize:\t 4 kB\nThreads:\t3\n"},
	{"proc", "kallsyms",
	 "3"
	 "ffffffff81000000 T _stext\nffffffffc0000000 t f\t[module]\n0 d x\n"},
	{"proc", "cgroup",
	 "4"
	 "cri-containerd-0123456789abcdef.scope"},
	{"proc", "offsets",
	 "5"
	 "monotonic  -3  5\nboottime 0 0\n"},
	{"perf_map", "map", "1000 20 first\n1010 8 in it\n7000 ffff a b c\nx\n"},
	{"selectors", "plain", "f,libm.so.6:exp,ns::g(int, int)+0x10"},
	{"selectors", "addresses", "addr:0x1100,0x1200,f+8"},
	{"selectors", "line", "line:src/svc.c:123"},
	{"selectors", "usdt", "usdt:libc.so.6:libc:setj*,usdt:app:request"},
	{"selectors", "args", "-4@%eax 8@-24(%rbp) 4@$5 8@(%rax,%rbx,8)"},
	{"selectors", "amounts", "10.5ms"},
	{"names", "cxx", "_ZNSt3mapIiSt6vectorIS_SaIS0_EEE2atERKi"},
	{"names", "rust", "_RNvCs1234_7mycrate3foo"},
	{"names", "rust-legacy", "_ZN4core3fmt5write17h0123456789abcdefE"},
	{"names", "ocaml", "camlStdlib__List__iter_507"},
	{"names", "escape", "\033]0;title\007\xc3\xa9\xff"},
};

static const struct fxt_arg args[] = {
	{.key = "module", .kind = FXT_STRING, .string = "a.so"},
	{.key = "by", .kind = FXT_STRING, .string = "helper (process 7, thread 9)"},
	{.key = "insns", .kind = FXT_UINT, .number = 1ull << 40},
	{.key = "delay_ns", .kind = FXT_UINT, .number = 20},
	{.key = "tid", .kind = FXT_UINT, .number = 8},
	{.key = "address", .kind = FXT_POINTER, .number = 0x401000},
};

static void put_events(struct fxt *fxt)
{
	struct fxt_event event = {
		.pid = 7, .tid = 8, .category = "user", .args = args, .n_args = 6};

	fxt__name_process(fxt, 7, "service");
	fxt__name_track(fxt, 7, 8, 8, "worker");
	for (int i = 0; i < 3; i++) {
		event.time_ns = 5 + 20 * (uint64_t)i;
		event.name = "iter";
		fxt__event(fxt, FXT_EVENT_BEGIN, 0, &event);
		event.category = i == 2 ? "off-cpu" : "user";
		event.name = i == 2 ? "[blocked]" : "work";
		event.time_ns += 5;
		fxt__event(fxt, FXT_EVENT_COMPLETE, event.time_ns + 5, &event);
		event.category = "user";
		fxt__end(fxt, 7, 8, event.time_ns + 10);
	}
	fxt__flow(fxt, FXT_EVENT_FLOW_BEGIN,
		  &(struct fxt_flow){.time_ns = 60, .pid = 7, .tid = 8, .id = 3});
	event.category = "hit";
	event.name = "hit iter";
	event.time_ns = 60;
	fxt__event(fxt, FXT_EVENT_COMPLETE, 65, &event);
}

static void write_trace(const char *name)
{
	char folder[] = "/tmp/seeds.XXXXXX", path[64], *bytes = NULL;
	struct sink *sink;
	struct fxt *fxt;
	uint64_t written;
	size_t size;

	if (!mkdtemp(folder))
		return;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	sink = sink__open(path);
	fxt = fxt__new(sink);
	put_events(fxt);
	fxt__free(fxt);
	if (!sink__close(sink, &written) && !fs__read(path, &bytes, &size))
		seed__write("fxt", name, bytes, size);
	free(bytes);
	fs__remove_dir(folder);
}

void seeds__texts(void)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		seed__write(texts[i].fuzzer, texts[i].name, texts[i].text, strlen(texts[i].text));
	write_trace("trace.fxt");
	write_trace("trace.fxt.gz");
	write_trace("trace.fxt.zst");
}
