package rest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	urlpkg "net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// errNoOwner refuses a request whose task no host works on.
var errNoOwner = &fault{status: http.StatusServiceUnavailable, detail: "no host works on the task now; come again", retryAfter: 1}

// relayPause is the time between two looks for the host of a task.
const relayPause = 100 * time.Millisecond

// errOwnerChanged ends a request to a host that does not work on the task any more.
var errOwnerChanged = errors.New("the task has another host")

// isElsewhere reports whether another host answers the request.
func isElsewhere(err error) bool {
	_, ok := errors.AsType[*swarm.Elsewhere](err)
	return ok
}

// hopKey returns the key of a post without one: with it the post may be sent again to another
// host. A caller cannot send it.
func (c *call) hopKey() string {
	if c.ownKey == "" {
		if c.isHop {
			c.ownKey = c.r.Header.Get(hopKeyHeader)
		}
		c.ownKey = cmp.Or(c.ownKey, uuid.NewString())
	}
	return "\x1f" + c.ownKey
}

// relay has a request answered by the host that works on its task: it is sent there as it came,
// again where a host is lost meanwhile, and handled here once the task is this host's. A request
// from another host is never sent on: that host looks again.
func (c *call) relay(rt route, moved *swarm.Elsewhere) error {
	if c.isHop {
		if c.w.status != 0 {
			panic(http.ErrAbortHandler)
		}
		c.w.Header().Set(elsewhereHeader, encodeHeader(moved.Task.Task))
		return newFault(http.StatusMisdirectedRequest, "another host works on the task")
	}
	others, task := c.h.opt.OtherHosts, moved.Task
	end := time.NewTimer(others.wait)
	defer end.Stop()
	for {
		began, reached, changed := time.Now(), true, others.owners.Changed()
		url, ok := others.owners.Owner(task)
		switch {
		case ok && url != "":
			var err error
			reached, err = c.forwardTo(url, &task)
			if err == nil || c.ctx().Err() != nil {
				return err
			}
			c.h.opt.Logger.Debug("the host of a task has not answered", "request_id", c.w.id, "url", url, "err", err)
		case ok && c.w.status == 0:
			err := rt.handle(c)
			if !errors.As(err, &moved) {
				return err
			}
			task = moved.Task
		}
		if c.w.status != 0 && (c.forwards || !c.w.isEvents()) {
			panic(http.ErrAbortHandler) // a part of an answer must not look whole
		}
		if reached && time.Since(began) > relayPause { // a host had it until now
			end.Reset(others.wait)
		}
		select {
		case <-changed:
		case <-time.After(relayPause):
		case <-c.ctx().Done():
			return context.Cause(c.ctx())
		case <-end.C:
			if c.w.status != 0 {
				panic(http.ErrAbortHandler)
			}
			return errNoOwner
		}
	}
}

// forwardTo sends the request to another host and copies its answer. An error means that the
// answer is not whole, and that the request may be sent again. It reports whether the host could
// be connected to.
func (c *call) forwardTo(url string, task *swarm.TaskKey) (reached bool, err error) {
	began := time.Now()
	defer func() { c.h.countForward(began, reached, err) }()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(c.ctx()))
	defer cancel(nil)
	defer c.endWithCaller(url, cancel)()
	go c.watchOwner(ctx, cancel, url, *task)
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	answer, err := c.sendTo(ctx, url)
	if err != nil {
		return connected.Load(), err
	}
	defer answer.Body.Close()
	return true, c.takeAnswer(answer, task)
}

// sendTo sends the request to another host.
func (c *call) sendTo(ctx context.Context, url string) (*http.Response, error) {
	req, err := c.newHop(ctx, url, c.body)
	if err != nil {
		return nil, err
	}
	req.Header.Set(proofHeader, c.h.opt.OtherHosts.proof(req, c.h.opt.Now()))
	return c.h.opt.OtherHosts.client.Do(req)
}

// newHop returns the request as another host gets it, without a proof.
func (c *call) newHop(ctx context.Context, url string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, c.r.Method, url+c.r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = forwardedHeader(c.r.Header)
	req.Host = c.r.Host
	req.Header.Set("X-Request-Id", c.w.id)
	req.Header.Set(hopKeyHeader, c.hopKey()[1:])
	c.setHopCaller(req.Header, body)
	return req, nil
}

// takeAnswer copies the answer of another host, unless that names another task or stops.
func (c *call) takeAnswer(answer *http.Response, task *swarm.TaskKey) (err error) {
	if answer.StatusCode == http.StatusMisdirectedRequest && answer.Header.Get(elsewhereHeader) != "" {
		if task.Task, err = urlpkg.PathUnescape(answer.Header.Get(elsewhereHeader)); err != nil {
			return err
		}
		return errOwnerChanged
	}
	if answer.Header.Get(stoppingHeader) != "" {
		return errOwnerChanged
	}
	return c.copyAnswer(answer)
}

// noteStopping marks the refusal of a host that stops: the host that has sent the request waits
// until another one works on the task.
func (c *call) noteStopping(err error) {
	f, stops := errors.AsType[*fault](err)
	stops = stops && f.finishSubject == mail.SubjectShutdownRequested
	if c.isHop && (stops || errors.Is(err, swarm.ErrDraining)) {
		c.w.Header().Set(stoppingHeader, "1")
	}
}

// watchOwner ends a request when another host works on its task.
func (c *call) watchOwner(ctx context.Context, cancel context.CancelCauseFunc, url string, task swarm.TaskKey) {
	for {
		changed := c.h.opt.OtherHosts.owners.Changed()
		if now, ok := c.h.opt.OtherHosts.owners.Owner(task); ok && now != url {
			cancel(errOwnerChanged)
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// oneHop are headers of one connection (https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1), and
// those that a host makes itself.
var oneHop = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Accept-Encoding", "Content-Length", "Date", proofHeader, hopKeyHeader, callerHeader, bodyHeader, leftHeader,
}

func forwardedHeader(h http.Header) http.Header {
	h = h.Clone()
	for _, name := range oneHop {
		h.Del(name)
	}
	return h
}

// copyAnswer copies the answer of another host. A stream that was begun goes on.
func (c *call) copyAnswer(answer *http.Response) error {
	if c.w.status == 0 {
		c.w.addHeaders = nil // the other host has named what was ignored
		for name, values := range forwardedHeader(answer.Header) {
			c.w.Header()[name] = values
		}
		c.w.staysOpen = c.w.isEvents()
		c.w.WriteHeader(answer.StatusCode)
	} else if answer.StatusCode == http.StatusNoContent {
		return nil // the stream has ended
	} else if answer.StatusCode != http.StatusOK {
		return errOwnerChanged
	}
	var to io.Writer = c.w
	switch {
	case c.forwards:
		to = flushedWriter{c.w}
	case c.w.isEvents():
		return c.copyEvents(bufio.NewReader(answer.Body))
	}
	if _, err := io.Copy(to, answer.Body); err != nil {
		panic(http.ErrAbortHandler) // a part of an answer must not look whole
	}
	return nil
}

// isEvents reports whether the answer is an event stream.
func (w *recorder) isEvents() bool {
	return strings.HasPrefix(w.Header().Get("Content-Type"), eventStreamType)
}

const eventStreamType = "text/event-stream"

// maxEvent bounds one event of another host, in bytes.
const maxEvent = 64 << 20

// copyEvents copies events, without those that the reader has.
func (c *call) copyEvents(from *bufio.Reader) error {
	var event []byte
	for {
		line, err := from.ReadSlice('\n')
		event = append(event, line...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(event) < maxEvent:
			continue
		case errors.Is(err, io.EOF) && len(event) == 0:
			return nil
		case err != nil:
			return err
		case len(bytes.TrimSpace(line)) > 0 || !bytes.HasSuffix(event, []byte("\n\r\n")) && len(event) > 2:
			continue
		}
		if id := eventID(event); id == 0 || id > c.w.lastEvent {
			c.w.lastEvent = max(id, c.w.lastEvent)
			_, err := c.w.Write(event)
			if err == nil {
				err = c.w.FlushError()
			}
			if err != nil {
				panic(http.ErrAbortHandler) // the reader has left
			}
		}
		event = event[:0]
	}
}

// eventID returns the id of an event, 0 for one without.
func eventID(event []byte) (id int64) {
	for line := range bytes.Lines(event) {
		if text, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
			id, _ = strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
			return id
		}
	}
	return 0
}
