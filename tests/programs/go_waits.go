// SPDX-License-Identifier: MIT

// A handler that is slow once in twenty times, for one reason: "mutex", "chan", "sleep" or "busy". Beside it
// the runtime's threads are idle, and other goroutines run on the handler's own.
//
//	go_waits REASON
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

var (
	mu   sync.Mutex
	ch   = make(chan int)
	sink uint64
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
func handle(reason string, slow bool) {
	renderPage(2 * time.Millisecond)
	if !slow {
		return
	}
	switch reason {
	case "mutex":
		held := make(chan int)
		go func() {
			mu.Lock()
			held <- 1
			time.Sleep(250 * time.Millisecond)
			mu.Unlock()
		}()
		<-held
		mu.Lock()
		sink++
		mu.Unlock()
	case "chan":
		go func() {
			time.Sleep(250 * time.Millisecond)
			ch <- 1
		}()
		<-ch
	case "sleep":
		time.Sleep(250 * time.Millisecond)
	case "busy":
		renderPage(250 * time.Millisecond)
	}
}

func main() {
	runtime.GOMAXPROCS(2)
	fmt.Println("pid", os.Getpid())
	go func() {
		for {
			renderPage(time.Millisecond)
			time.Sleep(5 * time.Millisecond)
		}
	}()
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
