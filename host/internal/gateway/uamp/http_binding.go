package uamp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/wire"
)

// httpBinding reaches a partner by the requests of HTTP, of the version that its client has.
type httpBinding struct {
	client *http.Client
	base   string // of the partner's addresses
	// partner is the partner's name.
	partner string
	// acks are the acknowledgements of the stream that is read.
	acks *ackQueue
}

func (b *httpBinding) close() {}

func (b *httpBinding) post(ctx context.Context, a *attempt) (posted, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(b.base, "/")+messagesPath, bytes.NewReader(a.text))
	if err != nil {
		return posted{}, gateway.Refuse("the url of %s cannot be called: %v", b.partner, err)
	}
	req.Header.Set("Content-Type", envelope.MediaType+";v=1")
	a.d.Trace.Fields(req.Header.Set)
	resp, err := b.client.Do(req)
	if err != nil {
		return posted{}, err
	}
	defer resp.Body.Close()
	text, err := wire.ReadBody(io.LimitReader(resp.Body, a.g.MaxBody+1), resp.ContentLength)
	if err != nil {
		return posted{}, err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return posted{}, a.refusalOf(ctx, resp, text)
	}
	a.sent = true
	var got posted
	if len(text) > 0 && isEnvelope(resp.Header) {
		if got, err = b.reply(ctx, a, text); err != nil {
			return got, err
		}
	}
	if at := resp.Header.Get("Location"); at != "" {
		got.stream, err = gateway.ResolveLocation(req.URL, at)
	}
	if got.stream != "" && got.answer != nil && got.answer.Intent == envelope.Error {
		got.answer = nil // it is about another recipient
	}
	return got, err
}

// reply takes the envelope in a response: the answer, or progress, which may name the stream, or
// what the partner sends besides.
func (b *httpBinding) reply(ctx context.Context, a *attempt, text []byte) (got posted, err error) {
	s, err := a.readReply(ctx, text)
	switch {
	case err != nil:
		return got, notCounted(ctx, err, "the partner's answer does not count: %v", err)
	case !a.asks() || a.isAnswer(s):
		got.answer = &s
		return got, nil
	case s.Intent == envelope.Progress && s.Stream != "":
		got.stream = b.streamNamed(s.Stream)
		return got, nil
	case s.Intent == envelope.Progress:
		return got, nil
	}
	if c, err := a.g.Runtime.Renew(a.caller); err == nil {
		s, x, err := a.g.receive(ctx, c, text, nil)
		a.g.record(c, s, text, x, err)
	}
	return got, nil
}

func (b *httpBinding) streamNamed(name string) string {
	return strings.TrimSuffix(b.base, "/") + streamPath + url.PathEscape(name)
}

// streamAt resolves an address, also one that the binding of a socket has kept: the stream has the
// same name here (U-056).
func (b *httpBinding) streamAt(address string) (string, error) {
	base, err := url.Parse(b.base)
	if err != nil {
		return "", err
	}
	at, err := gateway.ResolveLocation(base, address)
	if name := streamIn(at); name != "" && err == nil {
		at = b.streamNamed(name)
	}
	return at, err
}

// isEnvelope reports whether a response is said to be an envelope.
func isEnvelope(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && kind == envelope.MediaType
}

// refusalOf returns why the partner has not taken the envelope: what it has signed, or else
// the status.
func (a *attempt) refusalOf(ctx context.Context, resp *http.Response, text []byte) error {
	if isEnvelope(resp.Header) {
		s, err := a.readReply(ctx, text)
		if err != nil {
			return notCounted(ctx, err, "the partner answers %d, and its error does not count: %v", resp.StatusCode, err)
		}
		f := faultIn(s)
		f.RetryAfter = max(f.RetryAfter, gateway.StatusOf(resp).RetryAfter)
		return &signedRefusal{s, f}
	}
	return unsignedRefusal(resp, text)
}

// unsignedRefusal returns why the partner has not taken what it was sent, or lets no one in.
func unsignedRefusal(resp *http.Response, text []byte) error {
	status := gateway.StatusOf(resp)
	var p problem
	if json.Unmarshal(text, &p) == nil && (p.Code == envelope.Busy || p.Code == envelope.TooMany) {
		return &envelope.Fault{Code: p.Code, Text: "the partner answers " + string(p.Code), RetryAfter: status.RetryAfter}
	}
	if p.Code != "" && resp.StatusCode < http.StatusInternalServerError {
		return gateway.Refuse("the partner answers %d: %.10s %.200s", resp.StatusCode, p.Code, p.Detail)
	}
	return status
}

// read reads one response.
func (b *httpBinding) read(ctx context.Context, r *streamReader, at string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return gateway.Refuse("the Location %.200q cannot be read", at)
	}
	req.Header.Set("Accept", "text/event-stream")
	if next := r.assembly.Next(); next > 0 {
		req.Header.Set("Last-Event-ID", strconv.Itoa(next-1))
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNoContent:
		return gateway.Refuse("the partner's stream has ended without its last delta")
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone:
		return errStreamGone
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return errStreamDenied
	case resp.StatusCode != http.StatusOK:
		return gateway.StatusOf(resp)
	}
	r.name = ""
	b.acks = newAckQueue()
	var writing sync.WaitGroup
	writing.Go(func() { b.acks.run(ctx) })
	defer writing.Wait()
	defer stop()
	has := false
	err = eachEvent(resp.Body, int(r.g.MaxBody)+eventRoom, func(data []byte) error {
		has = true
		return r.take(ctx, data)
	})
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); err == nil && !has && kind != "text/event-stream" {
		err = fmt.Errorf("it is no stream of events: its Content-Type is %.100q", resp.Header.Get("Content-Type"))
	}
	return err
}

// eventRoom is what an event may have besides a delta, in bytes.
const eventRoom = 1 << 10

// eachEvent reads the data of server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream).
// One that is cut off is none.
func eachEvent(body io.Reader, most int, each func(data []byte) error) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, most)
	lines.Split(new(eventLines).split)
	var data []byte
	has := false
	for lines.Scan() {
		name, value, _ := bytes.Cut(lines.Bytes(), []byte(":"))
		switch {
		case string(name) == "data":
			if has {
				data = append(data, '\n')
			}
			data, has = append(data, bytes.TrimPrefix(value, []byte(" "))...), true
			if len(data) > most {
				return envelope.Faultf(envelope.TooLarge, "an event of the partner's stream has more than %d bytes", most)
			}
		case len(lines.Bytes()) == 0 && has:
			if len(data) > 0 { // an event without data is none
				if err := each(data); err != nil {
					return err
				}
			}
			data, has = data[:0], false
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return envelope.Faultf(envelope.TooLarge, "a line of the partner's stream has more than %d bytes", most)
	}
	return lines.Err()
}

// acknowledge sends an envelope: nothing can be sent beside a response.
func (b *httpBinding) acknowledge(ctx context.Context, r *streamReader, d envelope.Delta) {
	ack := *r.attempt
	ack.e = envelope.Envelope{
		ID: envelope.NewID(), Time: time.Now(), From: r.e.From, To: r.e.To, Intent: envelope.Progress, ReplyTo: r.e.ID, Window: envelope.DefaultWindow,
		Body: envelope.NewBody("application/json", []byte(`{"ack":`+strconv.Itoa(d.Seq)+`,"delta_seq":`+strconv.Itoa(d.Seq)+`}`)),
	}
	if d.Stream != impliedID {
		ack.e.Stream = d.Stream
	}
	b.acks.put(d.Stream, func() {
		if ack.seal() == nil {
			_, _ = ack.post(ctx)
		}
	})
}
