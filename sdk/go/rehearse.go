package skep

import (
	"encoding/json"
	"time"

	"skep/sdk/go/internal/abi"
)

// rehearsals is how often the SDK's own part of a turn is run before the image
// is taken: the second time finds what the first has made, the third is sure.
const rehearsals = 3

// rehearse runs what every turn runs in the SDK: decode an input, call a tool,
// encode a state and a result. What encoding/json learns about the types stays
// in the image, and the heap has then grown to what a small turn needs, so that
// turns neither compute it again nor grow their memory.
func rehearse() {
	for range rehearsals {
		t, err := newTurn(stage{})
		if err != nil {
			return
		}
		var state map[string]any
		_ = t.State(&state)
		_, _ = t.History()
		_ = t.SendRequest("a", "subject", "body")
		_ = t.TaskComplete("done")
		_ = t.SetState(map[string]any{"n": 1})
		t.Note("note")
		_, _ = t.result()
	}
}

// stage plays the host of a rehearsal. It has one answer for every op.
type stage struct{}

func (stage) Input() []byte { return []byte(sampleInput) }

func (stage) Output([]byte) abi.Code { return abi.CodeOK }

func (stage) Call(abi.Op, []byte) ([]byte, abi.Code) {
	return []byte(`{"id":"8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b11","request_id":"1c7b118d-2f6b-4e6f-8e4a-399f5e0d2c6a","text":"SUCCESS: message sent"}`), abi.CodeOK
}

func (stage) Submit(abi.Op, []byte) int64 { return -int64(abi.CodeUnsupported) }

func (stage) Wait([]int32, int32) int32 { return -int32(abi.CodeNotFound) }

func (stage) Read(int32, []byte) int64 { return -int64(abi.CodeNotFound) }

func (stage) Close(int32) {}

func (stage) LastError() []byte { return nil }

func (stage) Now() time.Time { return time.Time{} }

func (stage) Sleep(time.Duration) {}

// sampleInput has every member a turn's input can have.
var sampleInput = func() json.RawMessage {
	const tool = `{"name":"send_request","description":"Sends a request.","parameters":{"type":"object","properties":{"target":{"type":"string"}}}}`
	return json.RawMessage(`{"v":1,"turn":1,"task":{"id":"t","owner":"user:a@s","contributors":["user:a@s"],"completed":false},` +
		`"agent":{"address":"a","swarm":"s","instance":"user:a","comm_targets":["b"],"can_complete_tasks":true},` +
		`"tools":[` + tool + `],"message":` + sampleMessage + `,"priority":2,` +
		`"history":{"count":1,"tail":[{"seq":1,"turn":1,"time":"2026-01-01T00:00:00.000000+00:00","kind":"in","message":` + sampleMessage + `},` +
		`{"seq":2,"turn":1,"time":"2026-01-01T00:00:00.000000+00:00","kind":"call","call":{"id":"1","name":"help","args":{}}},` +
		`{"seq":3,"turn":1,"time":"2026-01-01T00:00:00.000000+00:00","kind":"result","result":{"id":"1","ok":true,"text":"x"}}]},` +
		`"state":{"n":1},"params":{"a":"b"},"deadline_ms":1000,"budget":{"fuel":1,"host_calls":1,"output_bytes":1}}`)
}()

const sampleMessage = `{"id":"8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b11","timestamp":"2026-01-01T00:00:00.000000+00:00","msg_type":"request",` +
	`"message":{"task_id":"t","request_id":"8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b11","sender":{"address_type":"user","address":"a"},` +
	`"recipient":{"address_type":"agent","address":"a"},"subject":"s","body":"b","sender_swarm":"s","recipient_swarm":"s","routing_info":{}}}`
