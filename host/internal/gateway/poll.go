package gateway

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Times of looks for an answer that a partner does not have yet, or cannot give now.
const (
	minPace = time.Second
	maxPace = 10 * time.Second
	// pollWait is how long the partner may hold a look at a Location.
	pollWait = 20 * time.Second
)

// Pace is the pace of looks for an answer: each that brings nothing doubles the time to the next. The
// zero value is its begin, also after a look that has brought something.
type Pace struct{ time time.Duration }

// Pause is the time to wait after a look that has brought nothing, by when it has begun and the pause
// that the partner wants. A look that the partner has held for long has not failed.
func (p *Pace) Pause(begun time.Time, wanted time.Duration) time.Duration {
	held := time.Since(begun)
	if p.time = min(max(2*p.time, minPace), maxPace); held >= maxPace {
		p.time = minPace
	}
	return max(p.time-held, wanted)
}

// Look is what a look for an answer at a Location has brought.
type Look struct {
	// Done means that it is the answer, News that it is something else that was not there before.
	Done, News bool
	// Location is where to look next, empty for the same place. Wait is what the partner wants before.
	Location string
	Wait     time.Duration
}

// Poll looks for an answer until look has brought it, the partner refuses it, or ctx ends: then trouble
// is what was wrong last. The response to the question has told the first Location.
func Poll(ctx context.Context, told Look, look func(*http.Request) (Look, error)) (trouble, err error) {
	wait := told.Wait
	if told.News {
		wait = max(wait, minPace)
	}
	var pace Pace
	for location := told.Location; ; {
		if !Pause(ctx, wait) {
			return trouble, context.Cause(ctx)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, location, http.NoBody)
		if err != nil {
			return nil, Refuse("the Location %.200q cannot be read", location)
		}
		req.Header.Set("Prefer", "wait="+strconv.Itoa(int(pollWait/time.Second)))
		begun := time.Now()
		got, err := look(req)
		switch {
		case err == nil && got.Done:
			return nil, nil
		case err != nil:
			trouble = fmt.Errorf("the answer at the Location %.200q: %w", location, err)
		}
		if err != nil && CarriedAfter(err).State == Refused {
			return nil, Refuse("%v", trouble)
		}
		if got.News {
			pace = Pace{}
		}
		wait = pace.Pause(begun, max(got.Wait, WaitIn(err)))
		location = cmp.Or(got.Location, location)
	}
}
