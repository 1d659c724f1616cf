package did_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/seal"
)

// web answers requests as hosts would.
type web struct {
	fetched atomic.Int64
	answer  func(*http.Request) (*http.Response, error)
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	w.fetched.Add(1)
	return w.answer(r)
}

func (w *web) resolver() *did.Resolver { return did.NewResolver(w, slog.New(slog.DiscardHandler)) }

// documents answers with a document of the host that is asked, with some keys.
func documents(header http.Header, keys ...seal.PublicKey) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		text, err := json.Marshal(did.Document{ID: "did:web:" + r.URL.Host, Keys: keys})
		return respond(http.StatusOK, header, string(text)), err
	}
}

func respond(status int, header http.Header, text string) *http.Response {
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(text))}
}

// TestKept (U-031): a document is kept for its max-age within bounds, and a failure for
// half a minute.
func TestKept(t *testing.T) {
	t.Parallel()
	failing := func(*http.Request) (*http.Response, error) { return respond(http.StatusNotFound, nil, ""), nil }
	for name, c := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		life   time.Duration
	}{
		"no header":  {documents(nil), 5 * time.Minute},
		"an hour":    {documents(http.Header{"Cache-Control": {"public, max-age=3600"}}), time.Hour},
		"for ever":   {documents(http.Header{"Cache-Control": {"max-age=99999999999"}}), 24 * time.Hour},
		"at once":    {documents(http.Header{"Cache-Control": {"max-age=0"}}), 5 * time.Minute},
		"no answer":  {failing, 30 * time.Second},
		"no subject": {func(*http.Request) (*http.Response, error) { return respond(http.StatusOK, nil, "{}"), nil }, 30 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &web{answer: c.answer}
			r := w.resolver()
			for _, step := range []struct {
				wait time.Duration
				want int64
			}{{0, 1}, {c.life - 1, 1}, {1, 2}} {
				time.Sleep(step.wait)
				_, err := r.Resolve(t.Context(), subject, "", "lab")
				if isFailure := c.life == 30*time.Second; errors.Is(err, did.ErrUnresolved) != isFailure || w.fetched.Load() != step.want {
					t.Errorf("%s: after %s %d fetches, %v", name, step.wait, w.fetched.Load(), err)
				}
			}
		})
	}
}

// TestUnavailablePauses (U-031): a document that cannot be fetched now is fetched again after two
// seconds, then more and more seldom up to each half minute; once it was there, after two again.
func TestUnavailablePauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		down := func(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }
		w := &web{answer: down}
		r := w.resolver()
		fetches := int64(0)
		for _, pause := range []time.Duration{2 * time.Second, 8 * time.Second, 30 * time.Second, 30 * time.Second, 0, 2 * time.Second, 8 * time.Second} {
			if w.answer = down; pause == 0 {
				w.answer, pause = documents(nil), 5*time.Minute
			}
			_, err := r.Resolve(t.Context(), subject, "", "lab")
			if fetches++; w.fetched.Load() != fetches || err != nil && did.WaitIn(err) != pause {
				t.Errorf("%d fetches, want %d; again in %v, want %v", w.fetched.Load(), fetches, did.WaitIn(err), pause)
			}
			time.Sleep(pause - 1)
			if _, again := r.Resolve(t.Context(), subject, "", "lab"); w.fetched.Load() != fetches || (again == nil) != (err == nil) {
				t.Errorf("before %v it is fetched again: %v", pause, again)
			}
			time.Sleep(time.Nanosecond)
		}
	})
}

// TestFetchedOnce (U-031): who asks while a document is fetched waits for it, also when
// the first one leaves.
func TestFetchedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		w := &web{answer: func(r *http.Request) (*http.Response, error) {
			select {
			case <-answer:
				return documents(nil)(r)
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}}
		r := w.resolver()
		first, leave := context.WithCancel(t.Context())
		errs := make(chan error, 10)
		for i := range 10 {
			ctx := t.Context()
			if i == 0 {
				ctx = first
			}
			go func() {
				_, err := r.Resolve(ctx, subject, "", "lab")
				errs <- err
			}()
			synctest.Wait()
		}
		leave()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("the one who left: %v", err)
		}
		close(answer)
		for range 9 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if n := w.fetched.Load(); n != 1 {
			t.Errorf("%d fetches", n)
		}
	})
}

// TestNewKey (V-U09, U-031): a key that a kept document does not have is looked for once.
func TestNewKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := newKey(t, subject+"#a", 'a'), newKey(t, subject+"#b", 'b')
		w := &web{answer: documents(nil, a)}
		r := w.resolver()
		resolve := func(key string, fetches int64, has bool) {
			t.Helper()
			d, err := r.Resolve(t.Context(), subject, key, "lab")
			if err != nil || d.HasKey(key) != has || w.fetched.Load() != fetches {
				t.Errorf("%s: %v, %d fetches, %v", key, d.HasKey(key), w.fetched.Load(), err)
			}
		}
		resolve(a.ID, 1, true)
		resolve(b.ID, 1, false) // it was just fetched
		time.Sleep(time.Minute)
		resolve(a.ID, 1, true)
		w.answer = documents(nil, a, b)
		resolve(b.ID, 2, true)
		resolve(a.ID, 2, true)
	})
}

// TestRateOfFetches (U-031): one caller has ten documents fetched in a minute, and another
// one is not held up by it.
func TestRateOfFetches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &web{answer: documents(nil)}
		r := w.resolver()
		refused := 0
		for i := range 1000 {
			if _, err := r.Resolve(t.Context(), fmt.Sprintf("did:web:h%d.example", i), "", "lab"); errors.Is(err, did.ErrRate) {
				refused++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if refused != 990 || w.fetched.Load() != 10 {
			t.Errorf("%d refused, %d fetched", refused, w.fetched.Load())
		}
		if _, err := r.Resolve(t.Context(), "did:web:h1.example", "", "lab"); err != nil {
			t.Errorf("one that is kept: %v", err)
		}
		if _, err := r.Resolve(t.Context(), "did:web:h999.example", "", "shop"); err != nil {
			t.Errorf("another caller: %v", err)
		}
		time.Sleep(time.Minute)
		if _, err := r.Resolve(t.Context(), "did:web:h998.example", "", "lab"); err != nil {
			t.Errorf("a minute later: %v", err)
		}
	})
}

// TestMemoryOfDocuments: documents that are kept are bounded.
func TestMemoryOfDocuments(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &web{answer: documents(nil)}
		r := w.resolver()
		for i := range 1500 {
			if _, err := r.Resolve(t.Context(), fmt.Sprintf("did:web:h%d.example", i), "", fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 1500 {
			if _, err := r.Resolve(t.Context(), fmt.Sprintf("did:web:h%d.example", i), "", fmt.Sprint("again", i)); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.fetched.Load(); n < 1500+1500-1024 {
			t.Errorf("%d fetches: more are kept than there is place for", n)
		}
	})
}

// TestResolveKey (U-032): a did:key has its key in itself, and nothing is fetched.
func TestResolveKey(t *testing.T) {
	t.Parallel()
	w := &web{}
	text := "did:key:" + newKey(t, "", 'a').Multikey()
	d, err := w.resolver().Resolve(t.Context(), text, "", "lab")
	if err != nil || len(d.Keys) != 1 || d.Keys[0].ID != text+"#"+strings.TrimPrefix(text, "did:key:") || w.fetched.Load() != 0 {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := w.resolver().Resolve(t.Context(), "did:web:127.0.0.1", "", "lab"); !errors.Is(err, did.ErrInvalid) {
		t.Error(err)
	}
}

// TestRedirectedDocument (V-U16, G-055): a document is where its identifier says, and
// nothing else is asked for it.
func TestRedirectedDocument(t *testing.T) {
	t.Parallel()
	for _, location := range []string{"http://127.0.0.1/did.json", "https://lab.example/did.json"} {
		w := &web{answer: func(*http.Request) (*http.Response, error) {
			return respond(http.StatusFound, http.Header{"Location": {location}}, ""), nil
		}}
		if _, err := w.resolver().Resolve(t.Context(), subject, "", "lab"); !errors.Is(err, did.ErrUnresolved) || w.fetched.Load() != 1 {
			t.Errorf("%s: %d requests, %v", location, w.fetched.Load(), err)
		}
	}
}

// TestLimitedLeader (U-031): a caller that has used up its rate does not refuse the
// document to another one that asks at the same time.
func TestLimitedLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &web{answer: documents(nil)}
		r := w.resolver()
		for i := range 10 {
			if _, err := r.Resolve(t.Context(), fmt.Sprintf("did:web:h%d.example", i), "", "flood"); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 100 {
			id, done := fmt.Sprintf("did:web:other%d.example", i), make(chan error)
			go func() {
				_, err := r.Resolve(t.Context(), id, "", "flood")
				done <- err
			}()
			_, err := r.Resolve(t.Context(), id, "", fmt.Sprint("lab", i))
			if err != nil {
				t.Error(err)
			}
			<-done
		}
	})
}

// TestOwnTransport (U-031): what comes by a caller's own transport is not what others get.
func TestOwnTransport(t *testing.T) {
	t.Parallel()
	public := &web{answer: func(*http.Request) (*http.Response, error) { return respond(http.StatusNotFound, nil, ""), nil }}
	own := &web{answer: documents(nil)}
	r := public.resolver()
	for range 2 {
		if _, err := r.ResolveOver(t.Context(), own, subject, "", "lab"); err != nil {
			t.Error(err)
		}
		if _, err := r.Resolve(t.Context(), subject, "", "lab"); !errors.Is(err, did.ErrUnresolved) {
			t.Errorf("another way: %v", err)
		}
		if _, err := r.ResolveOver(t.Context(), public, subject, "", "shop"); !errors.Is(err, did.ErrUnresolved) {
			t.Errorf("another caller: %v", err)
		}
	}
	if own.fetched.Load() != 1 || public.fetched.Load() != 2 {
		t.Errorf("%d and %d fetches", own.fetched.Load(), public.fetched.Load())
	}
}

// TestUnusableDocument (U-031): the operator's log has the address of a document that cannot be
// used, and why, once for each fetch.
func TestUnusableDocument(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		want   string
	}{
		"not found":   {func(*http.Request) (*http.Response, error) { return respond(http.StatusNotFound, nil, ""), nil }, "its host answers 404"},
		"not reached": {func(*http.Request) (*http.Response, error) { return nil, errors.New("dial tcp: refused") }, "dial tcp: refused"},
		"of another": {func(*http.Request) (*http.Response, error) {
			return respond(http.StatusOK, nil, `{"id":"did:web:evil.example"}`), nil
		}, "the document is of "},
		"no JSON": {func(*http.Request) (*http.Response, error) { return respond(http.StatusOK, nil, `<html>`), nil }, "the document "},
		"no keys": {documents(nil), "name no key of Ed25519 or P-256"},
		"a key of low order": {func(*http.Request) (*http.Response, error) {
			return respond(http.StatusOK, nil, `{"id":"did:web:lab.example","assertionMethod":[{"id":"#w","publicKeyMultibase":"z6MkeTG3bFFSLYVU7VqhgZxqr6YzpaGrQtFMh1uvqGy1vDnP"}]}`), nil
		}, "low-order point"},
	} {
		var out bytes.Buffer
		r := did.NewResolver(&web{answer: c.answer}, slog.New(slog.NewTextHandler(&out, nil)))
		for range 3 {
			_, _ = r.Resolve(t.Context(), "did:web:lab.example", "", "lab")
		}
		for _, want := range []string{c.want, "did=did:web:lab.example", "url=https://lab.example/.well-known/did.json", "caller=lab"} {
			if strings.Count(out.String(), want) != 1 {
				t.Errorf("%s: %q is not once in %s", name, want, out.String())
			}
		}
	}
}
