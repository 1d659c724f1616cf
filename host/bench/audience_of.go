package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
)

// hostAudience reads a task of a host.
type hostAudience struct {
	url, task string
	n         int
}

// begin makes a task that runs on because a timer is set.
func (h *hostAudience) begin(cl *http.Client) (func() (*http.Request, error), int, error) {
	h.n++
	h.task = "audience-" + strconv.Itoa(h.n)
	wait := `{"task_id":"` + h.task + `","body":"[[\"timer.set\",{\"after\":\"1h\",\"body\":\"late\"}]]"}`
	_, err := answerTo(cl, func() (*http.Request, error) {
		req, err := keyed(http.MethodPost, h.url+"/message", wait)
		if err == nil {
			req.Header.Set("Prefer", "respond-async")
		}
		return req, err
	})
	if err != nil {
		return nil, 0, err
	}
	cursor, err := h.settled(cl)
	return func() (*http.Request, error) {
		req, err := keyed(http.MethodGet, h.url+"/skep/v1/tasks/"+h.task+"/events", "")
		if err == nil {
			req.Header.Set("Last-Event-ID", cursor)
		}
		return req, err
	}, 0, err
}

// settled waits for the first turn and returns the last event's number.
func (h *hostAudience) settled(cl *http.Client) (string, error) {
	for range 1000 {
		raw, err := answerTo(cl, func() (*http.Request, error) {
			return keyed(http.MethodGet, h.url+"/skep/v1/tasks/"+h.task, "")
		})
		if err != nil {
			return "", err
		}
		var t struct {
			State  string `json:"state"`
			Cursor int64  `json:"cursor"`
			Usage  struct {
				Turns int `json:"turns"`
			} `json:"usage"`
		}
		err = json.Unmarshal(raw, &t)
		switch {
		case err != nil:
			return "", err
		case t.State != "running":
			return "", fmt.Errorf("the task of the readers is %s", t.State)
		case t.Usage.Turns > 0:
			return strconv.FormatInt(t.Cursor, 10), nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return "", errors.New("the first turn of the readers' task does not come")
}

// burst has one turn send many messages and complete the task. How many and how
// large is the script's affair.
func (h *hostAudience) burst(cl *http.Client, _ burst) error {
	const sends = 60
	script := "[" + strings.Repeat(`["send_request",{"target":"echo","subject":"s","body":"a message of some length for the other agent"}],`, sends) +
		`["task_complete",{"finish_message":"done"}]]`
	_, err := answerTo(cl, func() (*http.Request, error) {
		return keyed(http.MethodPost, h.url+"/message", `{"task_id":"`+h.task+`","body":`+strconv.Quote(script)+`}`)
	})
	return err
}

// a2aAudience reads a task of a2a-go's server.
type a2aAudience struct{ url string }

// begin makes a task whose agent waits for the signal. A reader gets the task
// first.
func (a *a2aAudience) begin(cl *http.Client) (func() (*http.Request, error), int, error) {
	raw, err := answerTo(cl, func() (*http.Request, error) {
		return a2aRequest(a.url, a2a.SendMessageRequest{
			Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(wantBurst)),
			Config:  &a2a.SendMessageConfig{ReturnImmediately: true},
		})
	})
	if err != nil {
		return nil, 0, err
	}
	task, err := a2aTask(raw)
	return func() (*http.Request, error) {
		return http.NewRequest(http.MethodPost, a.url+"/tasks/"+task+":subscribe", nil)
	}, 1, err
}

func (a *a2aAudience) burst(cl *http.Client, b burst) error { return signalTo(cl, a.url, b) }

// bareAudience reads what was made before.
type bareAudience struct{ url string }

func (b *bareAudience) begin(*http.Client) (func() (*http.Request, error), int, error) {
	return func() (*http.Request, error) { return http.NewRequest(http.MethodGet, b.url+"/events", nil) }, 0, nil
}

func (b *bareAudience) burst(cl *http.Client, n burst) error { return signalTo(cl, b.url, n) }

func signalTo(cl *http.Client, base string, b burst) error {
	query := url.Values{"events": {strconv.Itoa(b.events)}, "size": {strconv.Itoa(b.size)}}
	_, err := answerTo(cl, func() (*http.Request, error) {
		return http.NewRequest(http.MethodPost, base+"/open?"+query.Encode(), nil)
	})
	return err
}
