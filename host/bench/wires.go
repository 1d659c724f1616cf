package main

// What the providers send, with the members that the real ones send.
var (
	openaiWire = wire{
		begin: openaiChunk(`{"role":"assistant","content":"","refusal":null}`, "null"),
		piece: openaiChunk(`{"content":"`+token+`"}`, "null"),
		end: openaiChunk(`{}`, `"stop"`) +
			`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":` + openaiCounts + "}\n\n" +
			"data: [DONE]\n\n",
		whole: `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","system_fingerprint":"fp_1","choices":[` +
			`{"index":0,"message":{"role":"assistant","content":"%s","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],` +
			`"usage":` + openaiCounts + "}\n",
	}
	anthropicWire = wire{
		begin: anthropicEvent("message_start", `"message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m",`+
			`"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":1}}`) +
			anthropicEvent("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`),
		piece: anthropicEvent("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":"`+token+`"}`),
		end: anthropicEvent("content_block_stop", `"index":0`) +
			anthropicEvent("message_delta", `"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":10}`) +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		whole: `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"%s"}],` +
			`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":10}}` + "\n",
	}
)

const openaiCounts = `{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20,` +
	`"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0}}`

func openaiChunk(delta, finish string) string {
	return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","service_tier":"default","system_fingerprint":"fp_1",` +
		`"choices":[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":` + finish + `}],"usage":null}` + "\n\n"
}

func anthropicEvent(name, members string) string {
	return "event: " + name + "\ndata: {\"type\":\"" + name + "\"," + members + "}\n\n"
}
