// SPDX-License-Identifier: MIT
// A service: each line of stdin is a request.
use std::io::{stdin, stdout, BufRead, Write};
use std::sync::mpsc::{channel, Receiver};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

#[inline(never)]
fn sort_rows(n: u64) -> String {
    let mut rows: Vec<String> = (0..n).map(|i| format!("{:016x}", i.wrapping_mul(0x9e3779b97f4a7c15))).collect();
    rows.sort();
    rows[rows.len() / 2].clone()
}

#[inline(never)]
fn wait_for_lock(lock: &Mutex<u64>) -> u64 {
    let mut held = lock.lock().unwrap();
    *held += 1;
    *held
}

#[no_mangle]
#[inline(never)]
pub extern "C" fn handle_request(what: &str, lock: &Mutex<u64>, answers: &Receiver<u64>) -> u64 {
    match what {
        "sort" => sort_rows(400_000).len() as u64,
        "mutex" => wait_for_lock(lock),
        "channel" => answers.recv().unwrap(),
        _ => 0,
    }
}

fn main() {
    let lock = Arc::new(Mutex::new(0u64));
    let (sender, answers) = channel();
    println!("ready");
    for line in stdin().lock().lines() {
        let what = line.unwrap();
        if what == "mutex" {
            let (theirs, (begun, has_begun)) = (lock.clone(), channel());
            spawn(move || {
                let _held = theirs.lock().unwrap();
                begun.send(()).unwrap();
                sleep(Duration::from_millis(150));
            });
            has_begun.recv().unwrap();
        }
        if what == "channel" {
            let sender = sender.clone();
            spawn(move || {
                sleep(Duration::from_millis(150));
                sender.send(1).unwrap();
            });
        }
        let start = Instant::now();
        let said = handle_request(&what, &lock, &answers);
        println!("total={}", start.elapsed().as_nanos() + (said == u64::MAX) as u128);
        stdout().flush().unwrap();
    }
}
