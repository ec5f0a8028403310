// SPDX-License-Identifier: MIT

// Goroutines that pass values along channels, wait for one another, grow their stacks, panic and
// recover. An argument is the number of rounds.
package main

import (
	"os"
	"runtime"
	"strconv"
	"sync"
)

//go:noinline
func back() {
}

//go:noinline
func deeper(n int, data [64]byte) int {
	if n == 0 {
		back()
		return int(data[3])
	}
	data[n%64]++
	sum := deeper(n-1, data) + 1
	back()
	return sum
}

//go:noinline
func pass(in <-chan int, out chan<- int) {
	for value := range in {
		back()
		out <- value + 1
	}
	close(out)
}

//go:noinline
func pipeline(rounds int) int {
	first := make(chan int)
	in := first
	for i := 0; i < 4; i++ {
		out := make(chan int)
		go pass(in, out)
		in = out
	}
	sum := 0
	for i := 0; i < rounds; i++ {
		first <- i
		sum += <-in
		back()
	}
	close(first)
	<-in
	return sum
}

//go:noinline
func fail(depth int) {
	if depth == 0 {
		panic("no more")
	}
	fail(depth - 1)
	back()
}

//go:noinline
func try(depth int) (ok bool) {
	defer func() {
		ok = recover() != nil
		back()
	}()
	fail(depth)
	return false
}

//go:noinline
func leave(wait *sync.WaitGroup) {
	defer wait.Done()
	runtime.Goexit()
}

//go:noinline
func grow(wait *sync.WaitGroup, depth int, sums []int) {
	defer wait.Done()
	sums[depth%len(sums)] = deeper(depth, [64]byte{})
	runtime.Gosched()
	sums[depth%len(sums)] += deeper(depth/2, [64]byte{})
	back()
}

func main() {
	rounds := 10
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	sums := make([]int, 8)
	for i := 0; i < rounds; i++ {
		var wait sync.WaitGroup
		wait.Add(4)
		for k := 1; k < 4; k++ {
			go grow(&wait, 30*k, sums)
		}
		go leave(&wait)
		wait.Wait()
		back()
		if !try(i % 5) {
			os.Exit(1)
		}
		sums[0] += pipeline(3)
		back()
	}
}
