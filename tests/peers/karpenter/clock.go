package main

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// skippingClock goes as fast as time does, so that limits on computing stay what they are; but who waits for it does not wait.
type skippingClock struct {
	clock.RealClock
	began   time.Time
	mu      sync.Mutex
	virtual time.Time
}

// newClock gives a clock that shows the given time now.
func newClock(now time.Time) *skippingClock {
	return &skippingClock{began: time.Now(), virtual: now}
}

func (c *skippingClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.virtual.Add(time.Since(c.began))
}

func (c *skippingClock) Since(moment time.Time) time.Duration { return c.Now().Sub(moment) }

// Sleep goes on at once, as much later.
func (c *skippingClock) Sleep(duration time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.virtual = c.virtual.Add(duration)
}

func (c *skippingClock) After(duration time.Duration) <-chan time.Time {
	c.Sleep(duration)
	done := make(chan time.Time, 1)
	done <- c.Now()
	return done
}
