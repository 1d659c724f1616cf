package main

import (
	"context"
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

// hostReaders reads a task of a host.
type hostReaders struct {
	url, task string
	n         int
}

// begin makes a task that runs on because a timer is set.
func (h *hostReaders) begin(cl *http.Client) (httpRequest, int, error) {
	h.n++
	h.task = "audience-" + strconv.Itoa(h.n)
	wait := `{"task_id":"` + h.task + `","body":"[[\"timer.set\",{\"after\":\"1h\",\"body\":\"late\"}]]"}`
	if err := async(h.url, wait).expect(cl, ""); err != nil {
		return httpRequest{}, 0, err
	}
	cursor, err := h.settled(cl)
	return getFrom(h.url+"/skep/v1/tasks/"+h.task+"/events").as(benchKey).with("Last-Event-ID", cursor), 0, err
}

// settled waits for the first turn and returns the last event's number.
func (h *hostReaders) settled(cl *http.Client) (string, error) {
	for range 1000 {
		raw, err := getFrom(h.url+"/skep/v1/tasks/"+h.task).as(benchKey).send(context.Background(), cl)
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
func (h *hostReaders) burst(cl *http.Client, _ burst) error {
	const sends = 60
	script := "[" + strings.Repeat(`["send_request",{"target":"echo","subject":"s","body":"a message of some length for the other agent"}],`, sends) +
		`["task_complete",{"finish_message":"done"}]]`
	return message(h.url, `{"task_id":"`+h.task+`","body":`+strconv.Quote(script)+`}`).expect(cl, "")
}

// a2aReaders reads a task of a2a-go's server.
type a2aReaders struct{ url string }

// begin makes a task whose agent waits for the signal. A reader gets the task
// first.
func (a *a2aReaders) begin(cl *http.Client) (httpRequest, int, error) {
	raw, err := a2aRequest(a.url, a2a.SendMessageRequest{
		Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(wantBurst)),
		Config:  &a2a.SendMessageConfig{ReturnImmediately: true},
	}).send(context.Background(), cl)
	if err != nil {
		return httpRequest{}, 0, err
	}
	task, err := a2aTask(raw)
	return postTo(a.url+"/tasks/"+task+":subscribe", ""), 1, err
}

func (a *a2aReaders) burst(cl *http.Client, b burst) error { return signalTo(cl, a.url, b) }

// bareReaders reads what was made before.
type bareReaders struct{ url string }

func (b *bareReaders) begin(*http.Client) (httpRequest, int, error) {
	return getFrom(b.url + "/events"), 0, nil
}

func (b *bareReaders) burst(cl *http.Client, n burst) error { return signalTo(cl, b.url, n) }

func signalTo(cl *http.Client, base string, b burst) error {
	query := url.Values{"events": {strconv.Itoa(b.events)}, "size": {strconv.Itoa(b.size)}}
	return postTo(base+"/open?"+query.Encode(), "").expect(cl, "")
}
