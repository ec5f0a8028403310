// SPDX-License-Identifier: MIT
//! Rust panics: through drops, caught at every depth of a recursion, handed on, of every kind that
//! the library has, and out of threads. Each way out is followed by a call of back(), which is
//! always as deep. An argument is the number of rounds.
use std::cell::Cell;
use std::panic::{catch_unwind, panic_any, resume_unwind, set_hook, AssertUnwindSafe};

const MAX_DEPTH: usize = 9;

thread_local! {
    static TAKEN: Cell<usize> = Cell::new(0);
}

#[inline(never)]
fn take(n: usize) {
    TAKEN.with(|taken| taken.set(taken.get() + n));
}

/// The compiler knows nothing of what comes out (std::hint::black_box() is newer).
#[inline(never)]
fn opaque<T>(value: T) -> T {
    let value = std::mem::ManuallyDrop::new(value);

    unsafe { std::ptr::read_volatile(&*value as *const T) }
}

struct Cleaner(usize);

impl Drop for Cleaner {
    #[inline(never)]
    fn drop(&mut self) {
        take(self.0);
    }
}

#[inline(never)]
fn fail(how: usize) {
    let few = opaque(vec![1, 2, 3]);
    let nothing: Option<usize> = opaque(None);
    let wrong: Result<usize, String> = opaque(Err("wrong".to_string()));

    match how % 6 {
        0 => panic!("number {}", how),
        1 => take(few[opaque(how + 3)]),
        2 => take(nothing.unwrap()),
        3 => take(wrong.unwrap()),
        4 => panic_any(how),
        _ => take(how / opaque(0)),
    }
}

/// What it calls takes the panic, or passes it on.
#[inline(never)]
fn descend(depth: usize, taker: usize) {
    let _cleaner = Cleaner(depth);

    if depth == 0 {
        fail(taker);
    } else if depth == taker {
        if let Err(_) = catch_unwind(|| descend(depth - 1, taker)) {
            take(depth);
        }
    } else if depth % 3 == 0 {
        opaque(Cleaner(1));
        descend(depth - 1, taker);
        take(1);
    } else {
        descend(depth - 1, taker);
    }
}

#[inline(never)]
fn hand_on(depth: usize) {
    let _cleaner = Cleaner(depth);

    if depth == 0 {
        return fail(4);
    }
    match catch_unwind(|| hand_on(depth - 1)) {
        Err(payload) if depth % 2 == 0 => resume_unwind(payload),
        Err(_) => fail(depth),
        Ok(()) => take(1),
    }
}

#[inline(never)]
fn nest(depth: usize) {
    let mut cleaners: Vec<Cleaner> = (0..depth).map(Cleaner).collect();
    let result = catch_unwind(AssertUnwindSafe(|| {
        cleaners.push(Cleaner(depth));
        descend(depth, MAX_DEPTH + 1);
    }));

    if result.is_err() && depth > 0 {
        nest(depth - 1);
    }
    take(cleaners.len());
}

#[no_mangle]
#[inline(never)]
pub extern "C" fn back() {
    opaque(());
}

fn one_round(depth: usize) {
    for taker in 1..=depth {
        descend(depth, taker);
    }
    back();
    nest(depth % 4);
    back();
    if catch_unwind(|| hand_on(depth)).is_err() {
        take(depth);
    }
    back();
}

fn use_thread(depth: usize) {
    let result = std::thread::spawn(move || {
        one_round(depth);
        descend(depth, MAX_DEPTH + 1);
    })
    .join();

    if result.is_err() {
        take(depth);
    }
    back();
}

fn main() {
    let rounds = std::env::args()
        .nth(1)
        .map_or(usize::MAX, |word| word.parse().unwrap());

    set_hook(Box::new(|_| take(1)));
    for i in 0..rounds {
        one_round(i % (MAX_DEPTH + 1));
        if i % 16 == 0 {
            use_thread(i / 16 % (MAX_DEPTH + 1));
        }
    }
}
