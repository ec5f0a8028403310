// SPDX-License-Identifier: MIT

// A handler that is slow once in twenty times, for one reason: "mutex", "chan", "sleep", "busy" or "stop", or
// "sleep" while other goroutines pass values on as fast as they can: "chatter". Beside it
// the runtime's threads are idle, and other goroutines run on the handler's own. It prints "waker N" for the
// goroutine that ends each slow wait, and "stopped NS" for the time that each garbage collection stopped the world.
//
//	go_waits REASON
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

var (
	mu   sync.Mutex
	ch   = make(chan int)
	sink uint64
	held uint64

	stopping sync.WaitGroup
)

//go:noinline
func renderPage(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		for i := 0; i < 1000; i++ {
			sink = sink*6364136223846793005 + 1
		}
	}
}

//go:noinline
func holder(held chan int) {
	mu.Lock()
	held <- goid()
	time.Sleep(250 * time.Millisecond)
	mu.Unlock()
}

//go:noinline
func sender() {
	time.Sleep(250 * time.Millisecond)
	fmt.Println("waker", goid())
	ch <- 1
}

// goid is the number of the running goroutine, as the runtime's own messages have it.
func goid() (n int) {
	var text [64]byte
	fmt.Sscanf(string(text[:runtime.Stack(text[:], false)]), "goroutine %d", &n)
	return n
}

// hold makes no calls, so that it is not stopped but by a signal: GODEBUG=asyncpreemptoff=1 has none.
//
//go:noinline
func hold() {
	for i := uint64(0); i < 200000000; i++ {
		held = held*6364136223846793005 + i
	}
}

// stop has the world be stopped while a goroutine holds that up; one at a time.
func stop() {
	var before, after debug.GCStats
	stopping.Wait()
	stopping.Add(2)
	debug.ReadGCStats(&before)
	go func() {
		hold()
		stopping.Done()
	}()
	time.Sleep(2 * time.Millisecond)
	go func() {
		// By then the handler is in renderPage, and is stopped in what that calls.
		time.Sleep(5 * time.Millisecond)
		runtime.GC()
		debug.ReadGCStats(&after)
		fmt.Println("stopped", int64(after.PauseTotal-before.PauseTotal))
		stopping.Done()
	}()
}

//go:noinline
func handle(reason string, slow bool) {
	renderPage(2 * time.Millisecond)
	if !slow {
		return
	}
	switch reason {
	case "mutex":
		held := make(chan int)
		go holder(held)
		fmt.Println("waker", <-held)
		mu.Lock()
		sink++
		mu.Unlock()
	case "chan":
		go sender()
		<-ch
	case "sleep", "chatter":
		time.Sleep(250 * time.Millisecond)
	case "busy":
		renderPage(250 * time.Millisecond)
	case "stop":
		stop()
		renderPage(20 * time.Millisecond)
	}
}

// chatter has two goroutines wait for each other all the time.
func chatter() {
	there, back := make(chan int), make(chan int)
	go func() {
		for i := range there {
			back <- i
		}
	}()
	for i := 0; ; i++ {
		there <- i
		<-back
	}
}

func main() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2)
	}
	fmt.Println("pid", os.Getpid())
	go func() {
		for {
			renderPage(time.Millisecond)
			time.Sleep(5 * time.Millisecond)
		}
	}()
	if os.Args[1] == "chatter" {
		go chatter()
	}
	for i := 1; ; i++ {
		done := make(chan int)
		go func() {
			handle(os.Args[1], i%20 == 0)
			done <- 1
		}()
		<-done
		time.Sleep(2 * time.Millisecond)
	}
}
