package did

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"skep/host/internal/api/auth"
)

// How long documents are kept, and how many.
const (
	minLife     = 5 * time.Minute
	maxLife     = 24 * time.Hour
	failureLife = 30 * time.Second
	maxKept     = 1024
	// firstPause is how long it is kept that a document cannot be fetched now; each further time in
	// a row four times as long, up to failureLife: a host that starts again serves it soon.
	firstPause = 2 * time.Second
)

// fetchTime bounds one fetch.
const fetchTime = 10 * time.Second

// newPerCaller is how many documents that are not kept one caller may cause to be fetched
// in a minute.
const newPerCaller = 10

// Errors of a [Resolver].
var (
	// ErrUnresolved is returned for an identifier without a document that can be used.
	ErrUnresolved = errors.New("its DID document cannot be used")
	// ErrUnavailable is an ErrUnresolved that a later fetch may not meet.
	ErrUnavailable = errors.New("it cannot be fetched now")
	// ErrRate is returned for a caller that has had too many documents fetched.
	ErrRate = errors.New("too many unknown DIDs in a minute")

	errNoKeys = errors.New("assertionMethod and authentication name no key of Ed25519 or P-256 that is the subject's own")
)

// unavailableError is an ErrUnavailable that is kept until a time.
type unavailableError struct {
	error
	until time.Time
}

// Unwrap returns the error that is kept.
func (e *unavailableError) Unwrap() error { return e.error }

// WaitIn is the time until a document is fetched again that was [ErrUnavailable].
func WaitIn(err error) time.Duration {
	if e := (*unavailableError)(nil); errors.As(err, &e) {
		return max(time.Until(e.until), time.Second)
	}
	return failureLife
}

// Resolver finds the documents of identifiers. Whom it is asked about was admitted, and
// who asks has proven who he is. All methods are safe for concurrent use.
type Resolver struct {
	client  *http.Client
	log     *slog.Logger
	fetches singleflight.Group
	rate    *auth.Limiter

	mu   sync.Mutex
	kept map[string]kept
}

// kept is a document, or why there is none.
type kept struct {
	document Document
	err      error
	at       time.Time // of the fetch
	until    time.Time
	// pause is how long an ErrUnavailable is kept.
	pause time.Duration
}

// NewResolver returns a resolver whose transport reaches public hosts alone. Redirects are
// not followed. The log gets why a document that was fetched cannot be used.
func NewResolver(transport http.RoundTripper, log *slog.Logger) *Resolver {
	return &Resolver{client: newClient(transport), log: log, rate: auth.NewLimiter(auth.Rate{Requests: newPerCaller, Per: time.Minute}, nil), kept: map[string]kept{}}
}

// newClient is a client that follows no redirect.
func newClient(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Resolve returns the document of an identifier. A document without the key that is
// wanted, if one is, is fetched again, unless that was just done. The caller's name counts
// the fetches.
func (r *Resolver) Resolve(ctx context.Context, text, wantKey, caller string) (Document, error) {
	return r.ResolveOver(ctx, nil, text, wantKey, caller)
}

// ResolveOver is Resolve over another transport, which is the caller's own, or nil: what comes
// by it is kept for this caller alone.
func (r *Resolver) ResolveOver(ctx context.Context, own http.RoundTripper, text, wantKey, caller string) (Document, error) {
	id, err := Parse(text)
	if err != nil {
		return Document{}, err
	}
	if id.key != nil {
		d := Document{ID: text}
		d.Keys = append(d.Keys, *id.key)
		return d, nil
	}
	l := lookup{id: id, name: text, caller: caller, client: r.client}
	if own != nil {
		l.name, l.client = caller+"\n"+text, newClient(own)
	}
	if k, ok := r.find(l.name); ok {
		fresh := time.Since(k.at) < failureLife
		if k.err != nil || wantKey == "" || k.document.HasKey(wantKey) || fresh {
			return k.document, k.err
		}
	}
	return r.fetch(ctx, l)
}

// lookup is a document that is to be fetched.
type lookup struct {
	id ID
	// name is what it is kept under.
	name, caller string
	client       *http.Client
}

func (r *Resolver) find(text string) (kept, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.kept[text]
	return k, ok && time.Now().Before(k.until)
}

// fetched is a document with the caller whose rate counts its fetch.
type fetched struct {
	document Document
	caller   string
}

// fetch fetches a document, once for all who wait for it. Who leaves does not end it for
// the others, and the rate of one caller is not another's.
func (r *Resolver) fetch(ctx context.Context, l lookup) (Document, error) {
	for {
		done := r.fetches.DoChan(l.name, func() (any, error) {
			d, err := r.fetchFor(context.WithoutCancel(ctx), l)
			return fetched{d, l.caller}, err
		})
		select {
		case result := <-done:
			got, _ := result.Val.(fetched)
			if got.caller == l.caller || !errors.Is(result.Err, ErrRate) {
				return got.document, result.Err
			}
		case <-ctx.Done():
			return Document{}, context.Cause(ctx)
		}
	}
}

// fetchFor fetches a document if a caller's rate allows it, and keeps it.
func (r *Resolver) fetchFor(ctx context.Context, l lookup) (Document, error) {
	if wait, ok := r.rate.Allow(l.caller); !ok {
		return Document{}, fmt.Errorf("%w; again in %s", ErrRate, wait)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	k := kept{at: time.Now()}
	var life time.Duration
	k.document, life, k.err = get(ctx, l.client, l.id)
	if k.err != nil {
		k.err, life = fmt.Errorf("%s: %w: %w", l.id.text, ErrUnresolved, k.err), failureLife
	}
	if errors.Is(k.err, ErrUnavailable) {
		k.pause = min(max(4*r.pauseBefore(l.name), firstPause), failureLife)
		life, k.err = k.pause, &unavailableError{k.err, k.at.Add(k.pause)}
	}
	if why := k.err; why != nil || len(k.document.Keys) == 0 {
		r.log.Warn("uamp: a DID document cannot be used", "did", l.id.text, "url", l.id.URL(), "caller", l.caller, "error", cmp.Or(why, k.document.leftOut, errNoKeys))
	}
	k.until = k.at.Add(life)
	r.keep(l.name, k)
	return k.document, k.err
}

// pauseBefore is how long it was kept that a document cannot be fetched, 0 for another outcome.
func (r *Resolver) pauseBefore(text string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kept[text].pause
}

// keep keeps a document, in place of one that is over, else of any, when there are many.
func (r *Resolver) keep(text string, k kept) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, has := r.kept[text]; !has && len(r.kept) >= maxKept {
		drop, now := "", time.Now()
		for other, k := range r.kept {
			drop = other
			if now.After(k.until) {
				break
			}
		}
		delete(r.kept, drop)
	}
	r.kept[text] = k
}

// get fetches a document, and how long it may be kept.
func get(ctx context.Context, client *http.Client, id ID) (d Document, life time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, id.URL(), nil)
	if err != nil {
		return d, 0, err
	}
	req.Header.Set("Accept", "application/did+json, application/json")
	rsp, err := client.Do(req)
	if err != nil {
		return d, 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer rsp.Body.Close()
	if rsp.StatusCode >= http.StatusInternalServerError || rsp.StatusCode == http.StatusTooManyRequests {
		return d, 0, fmt.Errorf("%w: its host answers %d", ErrUnavailable, rsp.StatusCode)
	}
	if rsp.StatusCode != http.StatusOK {
		return d, 0, fmt.Errorf("its host answers %d", rsp.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(rsp.Body, MaxDocument+1))
	if err != nil {
		return d, 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	d, err = ReadDocument(id.text, text)
	return d, lifeOf(rsp.Header), err
}

// lifeOf is how long an answer may be kept: its max-age, within bounds.
func lifeOf(h http.Header) time.Duration {
	for part := range strings.SplitSeq(h.Get("Cache-Control"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		seconds, err := strconv.Atoi(value)
		if strings.EqualFold(name, "max-age") && err == nil {
			return min(max(time.Duration(min(seconds, 1<<30))*time.Second, minLife), maxLife)
		}
	}
	return minLife
}
