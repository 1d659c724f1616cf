package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"
)

// httpRequest is a request as a value, so that it can be sent again and again.
type httpRequest struct {
	method, url, body string
	header            map[string]string
}

func getFrom(url string) httpRequest { return httpRequest{method: http.MethodGet, url: url} }

func postTo(url, body string) httpRequest {
	return httpRequest{method: http.MethodPost, url: url, body: body}
}

// with returns the request with one more header.
func (r httpRequest) with(name, value string) httpRequest {
	header := map[string]string{}
	maps.Copy(header, r.header)
	header[name] = value
	r.header = header
	return r
}

// as returns the request with the key of its caller.
func (r httpRequest) as(key string) httpRequest { return r.with("Authorization", "Bearer "+key) }

// build returns the request that net/http sends.
func (r httpRequest) build(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, strings.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	for k, v := range r.header {
		req.Header.Set(k, v)
	}
	return req, nil
}

// open sends the request and returns the response with its body unread. A status
// other than 2xx is an error.
func (r httpRequest) open(ctx context.Context, cl *http.Client) (*http.Response, error) {
	req, err := r.build(ctx)
	if err != nil {
		return nil, err
	}
	rsp, err := cl.Do(req)
	if err != nil {
		return nil, err
	}
	if rsp.StatusCode/100 != 2 {
		defer rsp.Body.Close()
		raw, _ := io.ReadAll(rsp.Body)
		return nil, fmt.Errorf("%s %s: %s: %.200s", r.method, r.url, rsp.Status, raw)
	}
	return rsp, nil
}

// send sends the request and returns the body of its response.
func (r httpRequest) send(ctx context.Context, cl *http.Client) ([]byte, error) {
	rsp, err := r.open(ctx, cl)
	if err != nil {
		return nil, err
	}
	defer rsp.Body.Close()
	return io.ReadAll(rsp.Body)
}

// expect sends the request; its response must have a text.
func (r httpRequest) expect(cl *http.Client, want string) error {
	raw, err := r.send(context.Background(), cl)
	if err == nil && !bytes.Contains(raw, []byte(want)) {
		err = fmt.Errorf("answer %.1000q without %q", raw, want)
	}
	return err
}

// clientOf returns a client that keeps n connections to a server.
func clientOf(n int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}
}

// requesting is a subject that sends a request from n clients, each again and again;
// the response must have a text.
func requesting(request func() httpRequest, n int, want string) subject {
	return subject{want, func(span time.Duration) (int, time.Duration, error) {
		cl := clientOf(n)
		defer cl.CloseIdleConnections()
		return parallel(n, span, func(int) error { return request().expect(cl, want) })
	}}
}

// posting is a subject that posts the trivial message to a host from n clients.
func posting(url string, n int) subject {
	return requesting(func() httpRequest { return message(url, trivialBody) }, n, "")
}

// message is a POST /message of the benchmark's user.
func message(url, body string) httpRequest { return postTo(url+"/message", body).as(benchKey) }

// async is a POST /message that does not wait for its answer.
func async(url, body string) httpRequest { return message(url, body).with("Prefer", "respond-async") }

// listen serves a handler at an address of this machine.
func listen(h http.Handler) (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	srv := &http.Server{Handler: h}
	go func() { _ = srv.Serve(l) }()
	return "http://" + l.Addr().String(), func() { _ = srv.Close() }, nil
}

// serveHTTP is the loop of a child that serves a handler.
func (p pipe) serveHTTP(h http.Handler) error {
	url, stop, err := listen(h)
	if err != nil {
		return err
	}
	defer stop()
	return p.serve(url)
}
