package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

// web has pages that come late, never in time, and not at all.
func web(op skep.Op, req json.RawMessage) (any, error) {
	switch {
	case op != skep.OpHTTPFetch:
		return nil, nil
	case strings.Contains(string(req), "slow"):
		return skeptest.Stream{After: 2 * time.Second, Chunks: []string{`{"status":200,`, `"body":"hello"}`}}, nil
	case strings.Contains(string(req), "stuck"):
		return skeptest.Stream{After: time.Hour}, nil
	case strings.Contains(string(req), "off"):
		return skeptest.Stream{After: time.Second, Err: skep.Cancelled}, nil
	}
	return nil, skep.Errorf(skep.Denied, "not granted")
}

func play(body string) skeptest.Outcome {
	return skeptest.Run(Gather{}, skeptest.Input{CanComplete: true, Answer: web, Message: skep.Message{Body: body}})
}

func TestGathers(t *testing.T) {
	out := play("slow stuck no")
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	if want := "slow: 200, 5 bytes\nstuck: no answer\nno: DENIED: not granted"; out.Mail[0].Finish != want {
		t.Errorf("answered %q", out.Mail[0].Finish)
	}
	if len(out.Emits) != 2 || out.Emits[0].Text != "no" || *out.Emits[1].Fraction != 2.0/3 {
		t.Errorf("shown %+v", out.Emits)
	}
}

func TestIsCalledOff(t *testing.T) {
	if out := play("slow off"); out.Err == nil || out.Err.Code != skep.Cancelled || len(out.Mail) != 0 {
		t.Errorf("%v, %+v", out.Err, out.Mail)
	}
}
