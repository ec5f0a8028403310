// SPDX-License-Identifier: MIT

// A service: each line of stdin is a request.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

var (
	lock sync.Mutex
	live []*[4]int
	sink int
)

//go:noinline
func lockHandler() {
	lock.Lock()
	sink++
	lock.Unlock()
}

//go:noinline
func chanHandler(answers chan int) {
	sink += <-answers
}

//go:noinline
func renderPage(until time.Time) {
	for time.Now().Before(until) {
		for i := 0; i < 1000; i++ {
			sink = sink*31 + i
		}
	}
}

//go:noinline
func busyHandler() {
	renderPage(time.Now().Add(150 * time.Millisecond))
}

//go:noinline
func gcHandler() {
	runtime.GC()
}

//go:noinline
func handle(what string, answers chan int) {
	switch what {
	case "mutex":
		lockHandler()
	case "channel":
		chanHandler(answers)
	case "busy":
		busyHandler()
	case "gc":
		gcHandler()
	}
}

// prepare has another goroutine make it slow, which has begun then.
func prepare(what string, answers chan int) {
	begun := make(chan bool)
	switch what {
	case "mutex":
		go func() {
			lock.Lock()
			begun <- true
			time.Sleep(150 * time.Millisecond)
			lock.Unlock()
		}()
		<-begun
	case "channel":
		go func() {
			time.Sleep(150 * time.Millisecond)
			answers <- 1
		}()
	}
}

func main() {
	answers := make(chan int)
	for i := 0; i < 4000000; i++ {
		live = append(live, new([4]int))
	}
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for in.Scan() {
		prepare(in.Text(), answers)
		start := time.Now()
		handle(in.Text(), answers)
		fmt.Printf("total=%d\n", time.Since(start).Nanoseconds())
	}
}
