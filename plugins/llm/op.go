package main

import (
	"maps"
	"slices"

	skep "skep/sdk/go"
)

// opTool is an operation of the host as a tool. Its arguments are the request of
// the op in ABI.md.
type opTool struct {
	op                      skep.Op
	description, parameters string
}

const scope = `"scope":{"type":"string","enum":["task","agent","instance"],"description":"Who shares the value: this agent in this task, this agent in all tasks (the default), or all agents."}`

var opTools = map[string]opTool{
	"kv_get": {skep.OpKVGet, "Read a text that was kept under a key.",
		`{"type":"object","properties":{"key":{"type":"string"},` + scope + `},"required":["key"],"additionalProperties":false}`},
	"kv_put": {skep.OpKVPut, "Keep a text under a key. It lasts beyond this task unless the scope is task.",
		`{"type":"object","properties":{"key":{"type":"string"},"value":{"type":"string"},` + scope + `},"required":["key","value"],"additionalProperties":false}`},
	"kv_delete": {skep.OpKVDelete, "Forget what was kept under a key.",
		`{"type":"object","properties":{"key":{"type":"string"},` + scope + `},"required":["key"],"additionalProperties":false}`},
	"kv_list": {skep.OpKVList, "List the keys that begin with a prefix; an empty one lists all. next in the result is the after of the next page.",
		`{"type":"object","properties":{"prefix":{"type":"string"},"after":{"type":"string"},"limit":{"type":"integer"},` + scope + `},"additionalProperties":false}`},
	"http_fetch": {skep.OpHTTPFetch, "Make an HTTP request. Any status is a result. Credentials are added by the host.",
		`{"type":"object","properties":{"method":{"type":"string","enum":["GET","HEAD","POST","PUT","PATCH","DELETE","OPTIONS"]},"url":{"type":"string"},` +
			`"headers":{"type":"object"},"body":{"type":"string"}},"required":["method","url"],"additionalProperties":false}`},
	"timer_set": {skep.OpTimerSet, "Have the host send you mail of this task later, with the subject ::timer:: and the body given.",
		`{"type":"object","properties":{"after":{"type":"string","description":"As in 90s, 10m, 1h30m; up to 30 days."},"body":{"type":"string"}},"required":["after","body"],"additionalProperties":false}`},
	"timer_cancel": {skep.OpTimerCancel, "End a timer by the id that timer_set returned.",
		`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"],"additionalProperties":false}`},
}

func opNames() []string { return slices.Sorted(maps.Keys(opTools)) }
