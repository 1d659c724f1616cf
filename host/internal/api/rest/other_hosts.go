package rest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"skep/host/internal/swarm"
)

// Owners finds the hosts that work on tasks. It is safe for concurrent use.
type Owners interface {
	// Owner returns the URL of the host that works on a task, empty for this one; ok is false
	// while none is known to.
	Owner(task swarm.TaskKey) (url string, ok bool)
	// Changed returns a channel that is closed when the owner of a task changes.
	Changed() <-chan struct{}
}

// OtherHosts are the other hosts that share the store.
type OtherHosts struct {
	owners Owners
	// key proves to another host that a request comes from one.
	key []byte
	// wait is how long a request waits for a host that works on its task.
	wait   time.Duration
	client *http.Client
}

// dialTime bounds how long a host may take to be connected to.
const dialTime = 2 * time.Second

// connsPerHost are how many idle connections to each host are kept.
const connsPerHost = 64

// NewOtherHosts returns the other hosts, which have the same key.
func NewOtherHosts(owners Owners, key []byte, wait time.Duration) *OtherHosts {
	return &OtherHosts{owners, key, wait, &http.Client{
		Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: dialTime}).DialContext, TLSHandshakeTimeout: dialTime,
			MaxIdleConnsPerHost: connsPerHost, IdleConnTimeout: time.Minute, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Headers between hosts. proofHeader proves that another host has charged the limits of the caller,
// hopKeyHeader is the key of a post without one, callerHeader is the caller who has shown a client
// certificate to the other host, and elsewhereHeader names the task of a refusal.
const (
	proofHeader     = "Skep-Hop"
	hopKeyHeader    = "Skep-Hop-Key"
	callerHeader    = "Skep-Hop-Caller"
	elsewhereHeader = "Skep-Elsewhere"
	// stoppingHeader marks the refusal of a host that stops.
	stoppingHeader = "Skep-Stopping"
	// bodyHeader is the SHA-256 of the body beside callerHeader: no token is in such a request, and
	// its proof must be good for nothing else.
	bodyHeader = "Skep-Hop-Body"
	// leftHeader is set where the caller of the request with that key has left.
	leftHeader = "Skep-Hop-Left"
)

// hopLife is how far the clocks of hosts may differ.
const hopLife = 5 * time.Minute

// proof returns the value of proofHeader.
func (o *OtherHosts) proof(r *http.Request, now time.Time) string {
	at := strconv.FormatInt(now.Unix(), 10)
	return at + " " + o.sign(r, at)
}

func (o *OtherHosts) sign(r *http.Request, at string) string {
	mac := hmac.New(sha256.New, o.key)
	fmt.Fprintf(mac, "%s\n%s\n%s\n%s", at, r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"))
	if caller := r.Header.Get(callerHeader); caller != "" {
		fmt.Fprintf(mac, "\n%s\n%s\n%s", caller, r.Header.Get(hopKeyHeader), r.Header.Get(bodyHeader))
	}
	if left := r.Header.Get(leftHeader); left != "" {
		fmt.Fprintf(mac, "\nleft %s %s", left, r.Header.Get(hopKeyHeader))
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// isHop reports whether a request comes from another host.
func (o *OtherHosts) isHop(r *http.Request, now time.Time) bool {
	if o == nil {
		return false
	}
	at, sum, ok := strings.Cut(r.Header.Get(proofHeader), " ")
	seconds, err := strconv.ParseInt(at, 10, 64)
	return ok && err == nil && now.Sub(time.Unix(seconds, 0)).Abs() <= hopLife && hmac.Equal([]byte(sum), []byte(o.sign(r, at)))
}
