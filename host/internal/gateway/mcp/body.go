package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"skep/host/internal/gateway/wire"
)

// Codes of JSON-RPC errors (https://www.jsonrpc.org/specification#error_object).
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeInvalidParams  = -32602
	codeInternal       = -32603
)

// refuse answers a request whose id is not known.
func refuse(w http.ResponseWriter, status, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": text},
	})
}

// maxID is the size of a JSON-RPC id in bytes.
const maxID = 128

// checkBody refuses what readers of JSON may understand differently, and what is no
// request. It returns the id of the message as it was written, and whether the message
// answers one of ours.
func checkBody(body []byte, maxDepth int) (id string, isReply bool, err error) {
	if err := wire.CheckJSON(body, Name, maxDepth); err != nil {
		return "", false, fmt.Errorf("the request %w", err)
	}
	if bytes.TrimLeft(body, " \t\r\n")[0] != '{' {
		return "", false, errors.New("the request is no object; batches are not served")
	}
	var message struct {
		ID     json.RawMessage `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(body, &message); err != nil {
		return "", false, errors.New("the request is no JSON-RPC message")
	}
	if len(message.ID) > maxID {
		return "", false, fmt.Errorf("the id is longer than %d bytes", maxID)
	}
	return string(message.ID), message.Result != nil || message.Error != nil, nil
}
