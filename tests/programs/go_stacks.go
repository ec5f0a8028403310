// SPDX-License-Identifier: MIT

// Calls in goroutines whose stacks the runtime moves while they are open, and that end on whatever
// thread has time for them: what a return address that is not the caller's does not survive.
package main

import (
	"os"
	"time"
)

//go:noinline
func deep(n int) int {
	var space [256]int
	space[n&255] = n
	if n == 0 {
		time.Sleep(2 * time.Millisecond)
		return space[0]
	}
	return deep(n-1) + space[n&255]
}

// Whose frame a goroutine's first stack has no room for.
//
//go:noinline
func wide(n int) int {
	var space [2048]int
	space[n&2047] = n
	return space[(n*7)&2047]
}

//go:noinline
func iteration(n int) int {
	return deep(n)
}

// The check of the stack at the entry of one with so large a frame has two jumps.
//
//go:noinline
func large(n int) int {
	var space [1024]int
	space[n&1023] = n
	time.Sleep(2 * time.Millisecond)
	return space[(n+1)&1023]
}

func work(n int, done chan int) {
	done <- wide(n) + iteration(n)
}

func main() {
	done := make(chan int)
	os.Stdout.WriteString("pid " + itoa(os.Getpid()) + "\n")
	for i := 0; ; i++ {
		go work(i%64+1, done)
		go work(i%32+1, done)
		go func(n int) { done <- large(n) }(i)
		<-done
		<-done
		<-done
	}
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}
