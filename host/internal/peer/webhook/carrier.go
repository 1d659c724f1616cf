package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// maxAnswer bounds what is read of an answer, in bytes, so that its connection serves again.
const maxAnswer = 64 << 10

// Options are the settings of a [Carrier]. All are required.
type Options struct {
	URL string
	// Key is the shared secret, decoded.
	Key []byte
	// Transport carries the requests.
	Transport http.RoundTripper
	Now       func() time.Time
}

// Carrier takes messages for [swarm.QuestionsPeer] to a URL. It is safe for concurrent use.
type Carrier struct {
	opt    Options
	client *http.Client
}

var errRedirect = errors.New("it redirects, which is not followed; write where it is into webhook")

// New returns a carrier. It starts nothing.
func New(opt Options) *Carrier {
	return &Carrier{opt, &http.Client{Transport: opt.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect }}}
}

// Carry makes one attempt. 410 is final. Any other failure may pass, so the message is sent again.
func (c *Carrier) Carry(ctx context.Context, d swarm.Delivery) gateway.Carried {
	err := c.post(ctx, d)
	var status *gateway.StatusError
	switch {
	case err == nil:
		return gateway.Carried{State: gateway.Taken}
	case errors.As(err, &status) && status.Code == http.StatusGone:
		return gateway.Carried{State: gateway.Refused, Reason: err.Error()}
	}
	return gateway.Carried{State: gateway.Later, Reason: err.Error(), Wait: gateway.WaitIn(err)}
}

func (c *Carrier) post(ctx context.Context, d swarm.Delivery) error {
	body, err := encodeEvent(d)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.opt.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	id, at := d.Wrapper.MessageID, strconv.FormatInt(c.opt.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "skep")
	req.Header.Set("webhook-id", id)
	req.Header.Set("webhook-timestamp", at)
	req.Header.Set("webhook-signature", Sign(c.opt.Key, id, at, body))
	resp, err := c.client.Do(req)
	if err != nil {
		if urlErr := (*url.Error)(nil); errors.As(err, &urlErr) {
			err = urlErr.Err // without the URL, whose path may be a secret
		}
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("the receiver has not taken it: %w", gateway.StatusOf(resp))
	}
	return nil
}

// Sign returns the value of webhook-signature for a message
// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md#signature-scheme).
func Sign(key []byte, id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// event is the body of a request.
type event struct {
	Type      string    `json:"type"`
	Timestamp string    `json:"timestamp"`
	Data      eventData `json:"data"`
}

// eventData names the calls that wait for people.
type eventData struct {
	Tenant   string `json:"tenant"`
	Swarm    string `json:"swarm"`
	Instance string `json:"instance"`
	Task     string `json:"task_id"`
	swarm.QuestionNotice
}

// encodeEvent returns the body of a message, the same for each attempt.
func encodeEvent(d swarm.Delivery) ([]byte, error) {
	e := event{Type: "question.asked", Timestamp: d.Wrapper.Timestamp, Data: eventData{
		Tenant: d.Task.Tenant, Swarm: d.Task.Swarm, Instance: d.Task.Instance, Task: d.Task.Task,
	}}
	if err := json.Unmarshal([]byte(d.Wrapper.Payload.Body), &e.Data.QuestionNotice); err != nil {
		return nil, fmt.Errorf("read a message about questions: %w", err)
	}
	return json.Marshal(e)
}
