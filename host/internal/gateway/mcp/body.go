package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"

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

// maxIDNumber is the largest number that is an id: readers of JSON may round larger ones, and an
// answer had another id than its request (https://www.rfc-editor.org/rfc/rfc8259#section-6).
const maxIDNumber = 1<<53 - 1

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
	if err := checkID(message.ID); err != nil {
		return "", false, err
	}
	return string(message.ID), message.Result != nil || message.Error != nil, nil
}

// checkID refuses an id that is no string and no whole number.
func checkID(id json.RawMessage) error {
	switch {
	case len(id) > maxID:
		return fmt.Errorf("the id is longer than %d bytes", maxID)
	case len(id) == 0 || id[0] == '"' || string(id) == "null":
		return nil
	}
	if n, err := strconv.ParseFloat(string(id), 64); err != nil || n != math.Trunc(n) || math.Abs(n) > maxIDNumber {
		return fmt.Errorf("the id must be a string, or a whole number of at most %d", maxIDNumber)
	}
	return nil
}
