// SPDX-License-Identifier: MIT
#include "stack/unwinding.h"

#include <string.h>

#include "stack/stack_internal.h"
#include "target/unwind/landing_pads.h"
#include "target/unwind/ocaml_handlers.h"

/* The first row whose text is the name, or its beginning, applies. */
static const struct {
	const char *text;
	bool is_whole;
	struct unwinder unwinder; /* LEFT_BY_UNKNOWN: not an unwinder */
} rows[] = {
	/* GCC: libstdc++-v3/libsupc++, libgcc/unwind.inc */
	{"__cxa_throw", true, {LEFT_BY_THROW, false}},
	{"__cxa_rethrow", true, {LEFT_BY_THROW, false}},
	{"std::rethrow_exception(", false, {LEFT_BY_THROW, false}},
	{"_Unwind_Resume", true, {LEFT_BY_THROW, true}},
	{"_Unwind_Resume_or_Rethrow", true, {LEFT_BY_THROW, false}},
	{"_Unwind_RaiseException", true, {LEFT_BY_THROW, false}},
	{"_Unwind_ForcedUnwind", true, {LEFT_BY_THROW, false}},
	/* glibc: nptl/ */
	{"pthread_exit", true, {LEFT_BY_THROW, false}},
	{"__pthread_unwind", true, {LEFT_BY_THROW, false}},
	/* glibc: setjmp/. Which of the two it is follows from the setjmp() that it goes to. */
	{"longjmp", true, {LEFT_BY_LONGJMP, false}},
	{"_longjmp", true, {LEFT_BY_LONGJMP, false}},
	{"siglongjmp", true, {LEFT_BY_LONGJMP, false}},
	{"__longjmp_chk", true, {LEFT_BY_LONGJMP, false}},
	{"__libc_longjmp", true, {LEFT_BY_LONGJMP, false}},
	{"__libc_siglongjmp", true, {LEFT_BY_LONGJMP, false}},
	{"__longjmp", true, {LEFT_BY_LONGJMP, false}}, /* which the others call, and which jumps */
	{"____longjmp_chk", true, {LEFT_BY_LONGJMP, false}},
	/* The same, at the end of a forced unwinding. */
	{"__longjmp_cancel", true, {LEFT_BY_LONGJMP, false}},
	/* Rust: library/std/src/panicking.rs. catch_unwind() calls the first two. */
	{"std::panicking::try", false, {LEFT_BY_UNKNOWN, false}},
	{"std::panicking::catch_unwind", false, {LEFT_BY_UNKNOWN, false}},
	{"std::panicking::", false, {LEFT_BY_PANIC, false}},
	{"std::panic::resume_unwind", false, {LEFT_BY_PANIC, false}},
	{"core::panicking::", false, {LEFT_BY_PANIC, false}},
	{"rust_panic", true, {LEFT_BY_PANIC, false}},
	{"__rustc::rust_panic", false, {LEFT_BY_PANIC, false}},
	{"rust_begin_unwind", true, {LEFT_BY_PANIC, false}},
	{"__rustc::rust_begin_unwind", false, {LEFT_BY_PANIC, false}},
	{"__rust_start_panic", true, {LEFT_BY_PANIC, false}},
	{"__rustc::__rust_start_panic", false, {LEFT_BY_PANIC, false}},
	/* OCaml: runtime/fail_nat.c */
	{"caml_raise", false, {LEFT_BY_RAISE, false}},
};

const struct unwinder *unwinder__find(const char *name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strncmp(name, rows[i].text, strlen(rows[i].text)) &&
		    (!rows[i].is_whole || !name[strlen(rows[i].text)]))
			return rows[i].unwinder.left_by ? &rows[i].unwinder : NULL;
	return NULL;
}

static const struct unwinder *unwinder_of(const struct function *function)
{
	return function && function->name ? unwinder__find(function->name) : NULL;
}

bool unwinder__throws(const struct function *function)
{
	const struct unwinder *unwinder = unwinder_of(function);

	return unwinder && unwinder->left_by != LEFT_BY_LONGJMP &&
	       unwinder->left_by != LEFT_BY_RAISE;
}

bool departure__is_near(const struct frames *frames)
{
	const struct frame *frame = frames__top(frames);

	while (frame && frame->call.function && frame->call.function->kind == FUNCTION_UNKNOWN)
		frame = frames__parent(frames, frame);
	return frame && unwinder_of(frame->call.function);
}

struct departure departure__find(const struct frames *frames, const struct frame *stop)
{
	struct frame *frame = frames__top(frames);
	struct departure found = {0};

	for (; frame && frame != stop; frame = frames__parent(frames, frame)) {
		const struct unwinder *unwinder = unwinder_of(frame->call.function);

		if (!unwinder)
			continue;
		/* A forced unwinding ends by a longjmp() out of it. */
		if (unwinder->resumes && (!found.frame || found.left_by == LEFT_BY_LONGJMP))
			found.resuming = frame;
		found.left_by = unwinder->left_by;
		found.resumes = unwinder->resumes;
		found.frame = frame;
	}
	return found;
}

static enum left_by by_language(struct elf_image *image)
{
	return elf_image__holds_rust(image) ? LEFT_BY_PANIC : LEFT_BY_THROW;
}

static struct departure departure_of_exception(const struct frames *frames,
					       const struct frame *stop,
					       struct elf_image *pad_image)
{
	struct departure found = departure__find(frames, stop);
	struct frame *top = frames__top(frames), *caller;

	if (found.frame) {
		caller = frames__parent(frames, found.frame);
		/* The unwinder's library may have names, and the runtime that called it none. */
		if (caller && caller->call.function &&
		    caller->call.function->kind == FUNCTION_UNKNOWN &&
		    !strncmp(found.frame->call.function->name, "_Unwind_", strlen("_Unwind_")))
			found.left_by = by_language(caller->call.function->image);
		return found;
	}
	found.left_by = by_language(pad_image);
	if (!top || top == stop)
		return found;
	/*
	 * Without any names, as in a stripped static program: the top frame is the unwinder, which
	 * has gone to the landing pad. Its caller began the unwinding, unless an exception had
	 * landed in that caller before: then it is a clean-up, from which the unwinder continues.
	 */
	caller = frames__parent(frames, top);
	found.frame = caller && caller != stop ? caller : top;
	if (caller && frames__unwind_into(frames, caller)) {
		found.frame = found.resuming = top;
		found.resumes = true;
	}
	return found;
}

struct departure unwinding__departure_to(const struct stack *s, struct frame *frame,
					 enum left_by left_by)
{
	struct departure by = departure__find(s->frames, frame);
	struct frame *top = stack__top(s);

	/* longjmp() may end the unwinding that threw. */
	if (!by.frame || by.left_by == LEFT_BY_LONGJMP)
		by.left_by = left_by;
	if (!by.frame && left_by != LEFT_BY_UNKNOWN && top != frame)
		by.frame = top;
	return by;
}

/*
 * setjmp() and longjmp(): a frame that calls setjmp() is stored with the address after that call,
 * where longjmp() lands. A jmp_buf is in no packet: of several frames with the same address, as in
 * a recursion, the innermost one that lives is taken.
 */
static bool lives(const struct frames *frames, const struct landing *landing)
{
	const struct frame *frame;

	if (landing->depth >= frames->open.n)
		return false;
	frame = &frames->open.v[landing->depth];
	return frame->index == landing->index;
}

void unwinding__note_setjmp(struct stack *s, const struct branch *b, enum function_role role)
{
	struct frames *frames = s->frames;
	const struct frame *top = frames__top(frames);
	struct landing landing = {.ip = branch__return_ip(b), .slack = branch__return_slack(b)};
	size_t n = frames->landings.n;

	if (!top)
		return;
	landing.depth = (size_t)(top - frames->open.v);
	landing.index = top->index;
	landing.left_by = role == ROLE_SETJMP	   ? LEFT_BY_LONGJMP
			  : role == ROLE_SIGSETJMP ? LEFT_BY_SIGLONGJMP
						   : LEFT_BY_UNKNOWN;
	/* Landings of frames that have ended are last in the array. */
	while (n && (frames->landings.v[n - 1].depth > landing.depth ||
		     !lives(frames, &frames->landings.v[n - 1])))
		n--;
	frames->landings.n = n;
	/* This frame may have called setjmp() at the same place before. */
	for (; n && frames->landings.v[n - 1].depth == landing.depth; n--)
		if (frames->landings.v[n - 1].ip == landing.ip) {
			frames->landings.v[n - 1].is_taken = false;
			return;
		}
	frames->failed |= VEC_ADD(&frames->landings, landing) != 0;
}

static const struct landing *find(const struct frames *frames, uint64_t ip)
{
	for (size_t i = frames->landings.n; i--;) {
		const struct landing *landing = &frames->landings.v[i];

		if (ip - landing->ip <= landing->slack && lives(frames, landing))
			return landing;
	}
	return NULL;
}

void unwinding__note_landing(struct stack *s, uint64_t ip)
{
	struct landing *landing = (struct landing *)find(s->frames, ip);

	if (landing)
		landing->is_taken = true;
}

bool unwinding__has_setjmp(const struct frames *frames, uint64_t ip)
{
	return find(frames, ip);
}

const struct landing *unwinding__find_longjmp(const struct frames *frames, struct frame **longjmp)
{
	struct frame *frame = frames__top(frames), *caller;

	*longjmp = NULL;
	for (; frame && frame->call.function; frame = frames__parent(frames, frame)) {
		const struct unwinder *unwinder = unwinder_of(frame->call.function);

		if (unwinder && unwinder->left_by == LEFT_BY_LONGJMP)
			*longjmp = frame;
		else if (frame->call.function->kind != FUNCTION_UNKNOWN)
			break;
	}
	caller = *longjmp ? frames__parent(frames, *longjmp) : NULL;
	for (size_t i = caller ? frames->landings.n : 0; i--;) {
		const struct landing *landing = &frames->landings.v[i];

		if (landing->depth == (size_t)(caller - frames->open.v) && lives(frames, landing))
			return landing;
	}
	return NULL;
}

bool unwinding__find_setjmp(const struct stack *s, const struct branch *b, struct frame **frame,
			    struct departure *by)
{
	const struct landing *landing = find(s->frames, b->to);

	if (!landing)
		return false;
	*frame = &s->frames->open.v[landing->depth];
	*by = unwinding__departure_to(s, *frame, (enum left_by)landing->left_by);
	return true;
}

/*
 * Counts how far an exception has come. libgcc's unwinder goes from frame to frame twice: to find
 * the frame that takes the exception, and to leave those above (libgcc/unwind.inc:
 * _Unwind_RaiseException(), and its second phase, a function of its own, which _Unwind_Resume()
 * calls as well). It calls _Unwind_Find_FDE() once per frame (unwind-dw2.c: uw_frame_state_for()),
 * from the caller of these functions to the frame that it lands in. So the branches tell how many
 * frames were left, including those that a gap has hidden.
 */

void unwinding__note_step(struct stack *s)
{
	const struct frame *top = stack__top(s);
	const struct frame *phase = top ? frames__parent(s->frames, top) : NULL;
	const struct frame *unwinder = phase ? frames__parent(s->frames, phase) : NULL;

	/*
	 * A phase that began before the trace has made more steps, and does not have a caller yet.
	 */
	if (!unwinder) {
		s->steps.n = 0;
		return;
	}
	if (!s->steps.n || s->steps.phase != phase->index || s->steps.unwinder != unwinder->index) {
		s->steps.phase = phase->index;
		s->steps.unwinder = unwinder->index;
		s->steps.n = 0;
	}
	s->steps.n++;
}

/* Exceptions land at landing pads, in the innermost frame whose pending call has that pad. */

/* True if an exception that leaves the callee of `site` comes to `pad`, at ip. */
static bool leads_to(const struct stack *s, uint64_t site, const struct code_place *pad,
		     uint64_t ip)
{
	struct code_place from;

	return site && code_map__find(s->map, site, &from) && from.image == pad->image &&
	       site - from.vaddr == ip - pad->vaddr &&
	       landing_pads__find(from.image, from.vaddr) == pad->vaddr;
}

/* Functions without symbols are the pieces in .eh_frame: a pad may be in another piece. */
static bool may_hold(const struct function *function, const struct code_place *pad)
{
	return function == pad->function ||
	       (function && function->kind == FUNCTION_UNKNOWN && function->image == pad->image &&
		pad->function->kind == FUNCTION_UNKNOWN);
}

/*
 * The innermost frame that takes the exception by this pad: the instruction that it is executing
 * leads there. That is the branch of the top frame, the interrupted instruction below a signal,
 * otherwise a call.
 */
static struct frame *find_catcher(const struct stack *s, const struct branch *b,
				  const struct code_place *pad)
{
	struct frame *frame = stack__top(s);
	uint64_t site = b->from;

	while (frame && !(may_hold(frame->call.function, pad) && leads_to(s, site, pad, b->to))) {
		struct frame *callee = frame;
		uint64_t ip = callee->role ? callee->resume_ip : callee->return_ip;

		frame = frames__caller(s->frames, callee);
		site = callee->call.kind == CALL_SIGNAL ? callee->resume_ip : ip ? ip - 1 : 0;
	}
	return frame;
}

struct landed {
	const struct stack *s;
	const struct branch *b;
	struct code_place pad;
};

static bool takes(void *ctx, const struct function *function, uint64_t return_ip)
{
	const struct landed *landed = ctx;

	return return_ip && may_hold(function, &landed->pad) &&
	       leads_to(landed->s, return_ip - 1, &landed->pad, landed->b->to);
}

/*
 * If this is the exception that landed last, and it would have landed in each frame above
 * `catcher`, it was further down since the gap by their number: corrects the guess.
 */
static void mend_level(const struct landed *landed, struct stitcher *stitcher,
		       struct waiting catcher)
{
	const struct stitched *end = &stitcher->ends[catcher.end];
	uint64_t pad = stitcher__last_pad(stitcher, catcher.end);
	struct landed before = {.s = landed->s, .b = &(struct branch){.to = pad}};
	size_t n = end->stack.n;

	if (!pad || catcher.at + 1 == n || !code_map__find(landed->s->map, pad, &before.pad))
		return;
	for (size_t i = catcher.at + 1; i < n; i++)
		if (!takes(&before, end->stack.v[i].function, stitched__left_at(end, i)))
			return;
	stitcher__sink(stitcher, catcher.end, n - 1 - catcher.at);
}

/* Finds the innermost of the frames from before a gap whose pending call has that pad. */
struct waiting unwinding__find_waiting(struct stack *s, const struct branch *b,
				       const struct departure *by, uint32_t distance)
{
	struct stitcher *stitcher = &s->frames->stitcher;
	struct landed landed = {.s = s, .b = b};
	const struct stitched *end;
	struct waiting catcher;

	if (!code_map__find(s->map, b->to, &landed.pad))
		return WAITING_NONE;
	catcher = stitcher__reach(stitcher, distance);
	end = &stitcher->ends[catcher.end % STITCHED_MAX];
	if (catcher.end < stitcher->n_ends &&
	    takes(&landed, end->stack.v[catcher.at].function, stitched__left_at(end, catcher.at)))
		return catcher;
	catcher = stitcher__find(stitcher, takes, &landed);
	/*
	 * Every catch of a panic takes any panic; an exception that is thrown again may have
	 * another type.
	 */
	if (catcher.end < stitcher->n_ends && (by->resumes || by->left_by == LEFT_BY_PANIC))
		mend_level(&landed, stitcher, catcher);
	return catcher;
}

/*
 * The number of frames between the target of the unwinding and all that the segment has shown, the
 * target included; 0: not known.
 */
uint32_t unwinding__count_below(const struct stack *s)
{
	const struct frame *top = stack__top(s);
	size_t n = top && s->steps.unwinder == top->index ? s->steps.n : 0;
	size_t shown = s->frames->open.n;

	VEC_EACH(&s->frames->open, frame)
		if (frame->call.kind != CALL_FUNCTION)
			return 0;
	return n >= shown ? (uint32_t)(n - (shown - 1)) : 0;
}

bool unwinding__find_pad(const struct stack *s, const struct branch *b, struct frame **frame,
			 struct departure *by)
{
	struct code_place pad;
	enum pad_kind kind;

	if (!code_map__find(s->map, b->to, &pad))
		return false;
	kind = landing_pads__kind(pad.image, pad.vaddr);
	if (kind == PAD_NONE && !(s->traps && ocaml_traps__has(s->traps, b->to)))
		return false;
	/* The calls that OCaml's handler covers are not known: takes its function's nearest frame.
	 */
	*frame = kind == PAD_NONE ? frames__find(s->frames, stack__top(s), pad.function)
				  : find_catcher(s, b, &pad);
	*by = kind == PAD_EXCEPTION ? departure_of_exception(s->frames, *frame, pad.image)
				    : unwinding__departure_to(s, *frame, LEFT_BY_RAISE);
	return true;
}
