package skeptest

import (
	"encoding/json"
	"strings"

	skep "skep/sdk/go"
)

// chat asks the test's model.
func (h *host) chat(req json.RawMessage) (any, error) {
	var ask skep.ChatRequest
	if err := strict(req, &ask); err != nil {
		return nil, err
	}
	switch {
	case ask.Model == "":
		return nil, because(skep.Invalid, "model", "model is missing; it must be a name of [models]")
	case len(ask.Messages) == 0:
		return nil, because(skep.Invalid, "messages", "messages are missing; there must be one")
	case h.world.LLM == nil:
		return nil, because(skep.Denied, "grant", "the model %q is not granted to agent %q; set World.LLM", ask.Model, h.in.Agent)
	}
	rsp, err := h.world.LLM(ask)
	if err != nil {
		return nil, err
	}
	if rsp.ToolCalls == nil {
		rsp.ToolCalls = []skep.ChatCall{}
	}
	return rsp, nil
}

// pieces is an answer as who submits the question reads it: word by word.
func pieces(rsp skep.ChatResponse) Stream {
	var s Stream
	add := func(p skep.ChatPiece) { s.Chunks = append(s.Chunks, string(mustJSON(p))+"\n") }
	for _, word := range strings.SplitAfter(rsp.Reasoning, " ") {
		if word != "" {
			add(skep.ChatPiece{Reasoning: word})
		}
	}
	for _, word := range strings.SplitAfter(rsp.Text, " ") {
		if word != "" {
			add(skep.ChatPiece{Delta: word})
		}
	}
	rsp.Text, rsp.Reasoning = "", ""
	add(skep.ChatPiece{End: &rsp})
	return s
}
