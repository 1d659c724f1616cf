package main

import (
	"fmt"
	"syscall"
	"time"
)

// price is what one message took: seconds by the clock, and of all processors.
type price struct{ wall, cpu float64 }

// side is one of two things whose messages are compared.
type side struct {
	name string
	// message handles the i-th message of the side from its post to its end.
	message func(i int) error
}

// Messages are measured in slices, so that a noisy moment hits all sides.
const (
	slicesARound = 4
	sliceOf      = 25 // messages
)

// messages measures sides in turns and returns the median cost of each. The
// first slice of each warms it and does not count.
func (b *bench) messages(sides ...side) ([]price, error) {
	walls, cpus := make([][]float64, len(sides)), make([][]float64, len(sides))
	for slice := range b.rounds*slicesARound + 1 {
		for i := range sides {
			k := i
			if slice%2 == 1 {
				k = len(sides) - 1 - i // who follows whom counts too
			}
			s := sides[k]
			c, err := s.slice(slice * sliceOf)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			if slice > 0 {
				walls[k], cpus[k] = append(walls[k], c.wall), append(cpus[k], c.cpu)
			}
		}
	}
	out := make([]price, len(sides))
	for k := range sides {
		out[k] = price{median(walls[k]), median(cpus[k])}
	}
	return out, nil
}

func (s side) slice(first int) (price, error) {
	busy, began := processors(), time.Now()
	for i := range sliceOf {
		if err := s.message(first + i); err != nil {
			return price{}, err
		}
	}
	return price{time.Since(began).Seconds() / sliceOf, (processors() - busy) / sliceOf}, nil
}

// slices measures as many messages as count in a round, from a number on.
func (s side) slices(first int) (price, error) {
	var walls, cpus []float64
	for i := range slicesARound {
		p, err := s.slice(first + i*sliceOf)
		if err != nil {
			return price{}, err
		}
		walls, cpus = append(walls, p.wall), append(cpus, p.cpu)
	}
	return price{median(walls), median(cpus)}, nil
}

// processors is the computing time of this process so far, in seconds.
func processors() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it cannot fail for oneself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// grown reports what a message costs where something is large beside what it
// costs where it is small.
func (b *bench) grown(large, small side) {
	c := must(b.messages(large, small))
	b.report.compare("message, "+large.name, c[0].wall, seconds, small.name, c[1].wall, atMost(1.5))
	b.report.compare("computing time, "+large.name, c[0].cpu, seconds, small.name, c[1].cpu, atMost(1.5))
}
