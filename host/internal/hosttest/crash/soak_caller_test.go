package crash_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// errTaken is that a host has not refused what is no message.
var errTaken = errors.New("it was not refused")

// errCalledOff is that a question was called off.
var errCalledOff = errors.New("the question was called off")

// soakCaller asks over one protocol, one question after the other.
type soakCaller struct {
	name string
	// prepare makes a question. What it returns asks it, each time under the same id, and waits for the
	// answer at most for a time, after which the connection is cut.
	prepare func(id, text string) (ask func(limit time.Duration) (answer string, err error))
	// spoil sends what is no message, and returns an error unless it is refused; nil for none.
	spoil func() error
	// stop asks questions and reads no answer, until it closes the connection; nil for none.
	stop func(texts []string) error
	// leave closes the connections.
	leave func()
	asked int
}

const (
	// soakPause is between two questions of a caller.
	soakPause = 400 * time.Millisecond
	// soakLimit is how long a caller waits for one answer, and soakPatience how long it asks again.
	soakLimit, soakPatience = 30 * time.Second, 5 * time.Minute
)

// turn asks one question until it is answered, and now and then cuts the connection meanwhile, leaves
// after it, sends what is no message, or stops reading.
func (c *soakCaller) turn(s *soak) {
	c.asked++
	id := fmt.Sprintf("%s-%d", c.name, c.asked)
	text := "question " + id + ";"
	s.tally.count(c.name, func(r *soakRow) { r.asked++ })
	ask, limit := c.prepare(id, text), soakLimit
	if c.asked%8 == 0 {
		limit = 1 + time.Duration(rand.Int64N(int64(100*time.Millisecond)))
	}
	for begun, cut := time.Now(), false; ; limit, cut = soakLimit, true {
		answer, err := ask(limit)
		if cut && errors.Is(err, errCalledOff) {
			s.tally.count(c.name, func(r *soakRow) { r.calledOff++ })
			return
		}
		if err == nil && strings.Count(answer, "arrived: "+text) != 1 {
			s.t.Errorf("%s is answered by %q", id, answer)
		}
		if err == nil {
			break
		}
		if time.Since(begun) > soakPatience {
			s.t.Errorf("%s is not answered: %v", id, err)
			return
		}
		s.tally.count(c.name, func(r *soakRow) { r.repeated++; r.last = err.Error() })
		time.Sleep(soakPause)
	}
	s.tally.answer(c.name, id)
	switch {
	case c.asked%20 == 5 && c.spoil != nil:
		c.spoilOne(s)
	case c.asked%20 == 15 && c.stop != nil:
		if err := c.stop([]string{text[:len(text)-1] + "-unread-a;", text[:len(text)-1] + "-unread-b;"}); err == nil {
			s.tally.count(c.name, func(r *soakRow) { r.unread += 2 })
		}
	case c.asked%10 == 0:
		c.leave()
	}
	time.Sleep(soakPause)
}

// spoilOne sends what is no message. The host may be away meanwhile.
func (c *soakCaller) spoilOne(s *soak) {
	switch err := c.spoil(); {
	case err == nil:
		s.tally.count(c.name, func(r *soakRow) { r.refused++ })
	case errors.Is(err, errTaken):
		s.t.Errorf("%s: %v", c.name, err)
	}
}
