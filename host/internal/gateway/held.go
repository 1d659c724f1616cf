package gateway

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ErrHeld ends the wait of a caller that was held for as long as it may be.
var ErrHeld = errors.New("the caller was held long enough")

// Await waits for the answer of an exchange, over questions that are asked by messages of
// their own. It ends with ErrHeld after a time, and looks once without one.
func Await(ctx context.Context, rt Runtime, x Exchange, wait time.Duration) (Answer, error) {
	if wait <= 0 {
		a, ok, err := rt.Look(ctx, x)
		if err == nil && (!ok || a.Outcome == NeedsInput) {
			err = ErrHeld
		}
		return a, err
	}
	ctx, stop := context.WithTimeoutCause(ctx, wait, ErrHeld)
	defer stop()
	a, err := rt.Wait(ctx, x)
	if err != nil || a.Outcome != NeedsInput {
		return a, err
	}
	return FollowToEnd(ctx, rt, x, func(Piece) {})
}

// FollowToEnd waits for the answer of an exchange, and shows progress and chunks before it. It
// returns [ErrUnknown] for an exchange that is gone, as with the data of its tenant.
func FollowToEnd(ctx context.Context, rt Runtime, x Exchange, show func(Piece)) (a Answer, err error) {
	s, err := rt.Follow(ctx, x, 0)
	if err != nil {
		return a, err
	}
	defer s.Close()
	for {
		piece, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return lastLook(ctx, rt, x)
		}
		if err != nil {
			return a, err
		}
		switch piece.Kind {
		case End:
			return *piece.Answer, nil
		case Chunk, Progress:
			show(piece)
		}
	}
}

// lastLook returns the answer of an exchange whose stream has ended before it.
func lastLook(ctx context.Context, rt Runtime, x Exchange) (Answer, error) {
	a, ok, err := rt.Look(ctx, x)
	if err == nil && (!ok || a.Outcome == NeedsInput) {
		err = fmt.Errorf("the message %q and its task are gone: %w", x.ID, ErrUnknown)
	}
	return a, err
}

// PreferredWait is how long a caller wants to be held: not at all with
// `Prefer: respond-async`, N seconds with `Prefer: wait=N`
// (https://www.rfc-editor.org/rfc/rfc7240), at most as long as it may.
func PreferredWait(r *http.Request, standard, most time.Duration) time.Duration {
	wait := standard
	for _, line := range r.Header.Values("Prefer") {
		for part := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			seconds, err := strconv.Atoi(strings.Trim(value, `"`))
			switch {
			case strings.EqualFold(name, "respond-async"):
				return 0
			case strings.EqualFold(name, "wait") && err == nil && seconds >= 0:
				wait = time.Duration(min(seconds, 1<<20)) * time.Second
			}
		}
	}
	return min(wait, most)
}

// EndWhen returns a context that also ends when a channel is closed. Call cancel.
func EndWhen(ctx context.Context, closed <-chan struct{}) (ending context.Context, cancel context.CancelFunc) {
	ending, cancel = context.WithCancel(ctx)
	go func() {
		select {
		case <-closed:
			cancel()
		case <-ending.Done():
		}
	}()
	return ending, cancel
}

// encodedID begins the names of ids that a path could not have as they are.
const encodedID = "~"

// PathOfID is the id of a message as a part of a path.
func PathOfID(id string) string {
	if isPlainID(id) {
		return id
	}
	return encodedID + base64.RawURLEncoding.EncodeToString([]byte(id))
}

// IDOfPath is the inverse of [PathOfID].
func IDOfPath(part string) (id string, ok bool) {
	rest, isEncoded := strings.CutPrefix(part, encodedID)
	if !isEncoded {
		return part, isPlainID(part)
	}
	raw, err := base64.RawURLEncoding.DecodeString(rest)
	return string(raw), err == nil && PathOfID(string(raw)) == part
}

// isPlainID reports whether an id is safe as a part of a path.
func isPlainID(id string) bool {
	for i := range len(id) {
		c := id[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '_' && c != '.') {
			return false
		}
	}
	return id != ""
}
