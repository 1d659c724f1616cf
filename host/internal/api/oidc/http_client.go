package oidc

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// Limits of a backend's answer: time, and size in bytes.
const (
	requestTimeout = 5 * time.Second
	maxAnswer      = 1 << 20
)

// webClient fetches JSON from configured addresses.
type webClient struct{ client *http.Client }

func newWebClient() *webClient {
	return &webClient{&http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: requestTimeout}).DialContext,
			TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:   requestTimeout,
			ResponseHeaderTimeout: requestTimeout,
			MaxIdleConnsPerHost:   8,
			IdleConnTimeout:       time.Minute,
			ForceAttemptHTTP2:     true,
		},
		// A redirect would send the caller's key to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (w *webClient) close() { w.client.CloseIdleConnections() }

// fetchJSON sends a request without a body, with a bearer token if there is one,
// and decodes the body of a 200 into out.
func (w *webClient) fetchJSON(ctx context.Context, method, address, token string, out any) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, method, address, http.NoBody)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	rsp, err := w.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = rsp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(rsp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s %s: %w", method, address, err)
	case len(body) > maxAnswer:
		return 0, fmt.Errorf("%s %s: the answer has more than %d bytes", method, address, maxAnswer)
	case rsp.StatusCode != http.StatusOK:
		return rsp.StatusCode, nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return 0, fmt.Errorf("%s %s: the answer is not the JSON that was expected: %w", method, address, err)
	}
	return rsp.StatusCode, nil
}

// CheckURL returns the fault of a backend's URL: keys and tokens need TLS or
// loopback.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return fmt.Errorf("%q is no URL", address)
	}
	if u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()) {
		return nil
	}
	return fmt.Errorf("%s must begin with https://; plain http:// is for this machine only", address)
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
