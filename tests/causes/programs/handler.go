// SPDX-License-Identifier: MIT

// A service: each line of stdin is a request.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

var (
	lock sync.Mutex
	live []*[4]int
	sink int
	held int

	made [1000]*node

	collections sync.WaitGroup
)

type node struct {
	next *node
	data [30]int
}

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

// hold makes no calls, so that it is not stopped but by a signal.
//
//go:noinline
func hold() {
	for i := 0; i < 300000000; i++ {
		held = held*31 + i
	}
}

// allocHandler makes garbage while the collector is at work, which lets it help.
//
//go:noinline
func allocHandler(until time.Time) {
	for time.Now().Before(until) {
		for i := range made {
			made[i] = &node{}
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
	case "assist":
		allocHandler(time.Now().Add(150 * time.Millisecond))
	case "stopped":
		renderPage(time.Now().Add(30 * time.Millisecond))
	}
}

// goid is the number of the running goroutine, as the runtime's own messages have it.
func goid() (n int) {
	var text [64]byte
	fmt.Sscanf(string(text[:runtime.Stack(text[:], false)]), "goroutine %d", &n)
	return n
}

func stoppedFor() time.Duration {
	var stats debug.GCStats
	debug.ReadGCStats(&stats)
	return stats.PauseTotal
}

// prepare has another goroutine make it slow, which has begun then: its number.
func prepare(what string, answers chan int) int {
	begun := make(chan int)
	switch what {
	case "mutex":
		go func() {
			lock.Lock()
			begun <- goid()
			time.Sleep(150 * time.Millisecond)
			lock.Unlock()
		}()
	case "channel":
		go func() {
			begun <- goid()
			time.Sleep(150 * time.Millisecond)
			answers <- 1
		}()
	case "stopped":
		go func() {
			begun <- goid()
			hold()
		}()
		collections.Add(1)
		go func() {
			time.Sleep(5 * time.Millisecond)
			runtime.GC()
			collections.Done()
		}()
	case "assist":
		debug.SetGCPercent(5)
		return 0
	default:
		return 0
	}
	return <-begun
}

func main() {
	answers := make(chan int)
	for i := 0; i < 4000000; i++ {
		live = append(live, new([4]int))
	}
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for in.Scan() {
		waker, stopped := prepare(in.Text(), answers), stoppedFor()
		start := time.Now()
		handle(in.Text(), answers)
		total := time.Since(start).Nanoseconds()
		debug.SetGCPercent(100)
		collections.Wait()
		fmt.Printf("total=%d waker=%d stopped=%d\n", total, waker, (stoppedFor() - stopped).Nanoseconds())
	}
}
