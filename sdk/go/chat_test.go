package skep_test

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

// asker runs a function as a turn.
type asker func(t *skep.Turn) error

func (a asker) Turn(t *skep.Turn) error { return a(t) }

func question() skep.ChatRequest {
	return skep.ChatRequest{Model: "default", Messages: []skep.ChatMessage{{Role: skep.RoleUser, Content: "hello"}}}
}

func TestChatGivesTheWholeAnswer(t *testing.T) {
	t.Parallel()
	want := skep.ChatResponse{
		Text: "Good day to you", Reasoning: "be kind", Finish: skep.FinishToolCalls,
		ToolCalls: []skep.ChatCall{{ID: "1", Name: "wave", Arguments: `{"hands":2}`}},
		Usage:     skep.ChatUsage{InputTokens: 3, OutputTokens: 4, MicroUSD: 5}, Carry: []byte(`{"signature":"x"}`),
	}
	world := &skeptest.World{LLM: func(r skep.ChatRequest) (skep.ChatResponse, error) {
		if !reflect.DeepEqual(r, question()) {
			t.Errorf("asked %+v", r)
		}
		return want, nil
	}}
	var whole, streamed skep.ChatResponse
	var deltas, thoughts []string
	out := skeptest.Run(asker(func(tn *skep.Turn) (err error) {
		if whole, err = tn.Chat(question()); err != nil {
			return err
		}
		streamed, err = tn.ChatStream(question(), func(p skep.ChatPiece) error {
			deltas, thoughts = append(deltas, p.Delta), append(thoughts, p.Reasoning)
			return nil
		})
		return err
	}), skeptest.Input{World: world})
	if out.Err != nil || !reflect.DeepEqual(whole, want) || !reflect.DeepEqual(streamed, want) {
		t.Errorf("%v\n got %+v\n and %+v\nwant %+v", out.Err, whole, streamed, want)
	}
	if got := strings.Join(deltas, "|"); got != "||Good |day |to |you" {
		t.Errorf("text came as %q", got)
	}
	if got := strings.Join(thoughts, "|"); got != "be |kind||||" {
		t.Errorf("reasoning came as %q", got)
	}
}

func TestChatThatFails(t *testing.T) {
	t.Parallel()
	off := errors.New("enough")
	tests := []struct {
		name   string
		answer any
		each   func(skep.ChatPiece) error
		want   error
	}{
		{"at once", skep.Errorf(skep.Unavailable, "no model"), nil, skep.Unavailable},
		{"late", skeptest.Stream{Chunks: []string{`{"delta":"a"}` + "\n"}, Err: skep.Unavailable}, nil, skep.Unavailable},
		{"cut off", skeptest.Stream{Chunks: []string{`{"delta":"a"}` + "\n"}}, nil, io.ErrUnexpectedEOF},
		{"no JSON", skeptest.Stream{Chunks: []string{"delta\n"}}, nil, skep.Internal},
		{"left", skep.ChatResponse{Text: "a b"}, func(skep.ChatPiece) error { return off }, off},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var err error
			out := skeptest.Run(asker(func(tn *skep.Turn) error {
				_, err = tn.ChatStream(question(), tt.each)
				return err
			}), skeptest.Input{Answer: func(skep.Op, json.RawMessage) (any, error) {
				if err, ok := tt.answer.(error); ok {
					return nil, err
				}
				return tt.answer, nil
			}})
			if !errors.Is(err, tt.want) && !errors.Is(out.Err, tt.want) {
				t.Errorf("got %v and %v, want %v", err, out.Err, tt.want)
			}
			if tt.name == "left" && !out.Calls[0].Closed {
				t.Error("the question was not called off")
			}
		})
	}
}

func TestChatNeedsAGrant(t *testing.T) {
	t.Parallel()
	out := skeptest.Run(asker(func(tn *skep.Turn) error {
		_, err := tn.Chat(question())
		return err
	}), skeptest.Input{})
	if !errors.Is(out.Err, skep.Denied) {
		t.Errorf("got %v", out.Err)
	}
}
