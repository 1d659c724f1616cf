package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"
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

// checkBody refuses what readers of JSON may understand differently: bad UTF-8, members
// that come twice, values nested too deeply, several values. It returns the id of the
// message as it was written.
func checkBody(body []byte, maxDepth int) (id string, err error) {
	if !utf8.Valid(body) {
		return "", errors.New("the request is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := checkValue(d, maxDepth); err != nil {
		return "", err
	}
	if _, err := d.Token(); err != io.EOF {
		return "", errors.New("the request is more than one JSON value")
	}
	if bytes.TrimLeft(body, " \t\r\n")[0] != '{' {
		return "", errors.New("the request is no object; batches are not served")
	}
	var message struct {
		ID json.RawMessage `json:"id"`
	}
	if err := json.Unmarshal(body, &message); err != nil {
		return "", errors.New("the request is no JSON-RPC message")
	}
	if len(message.ID) > maxID {
		return "", fmt.Errorf("the id is longer than %d bytes", maxID)
	}
	return string(message.ID), nil
}

func checkValue(d *json.Decoder, depth int) error {
	t, err := d.Token()
	if err != nil {
		return errors.New("the request is not JSON")
	}
	open, nested := t.(json.Delim)
	if !nested {
		return nil
	}
	if depth == 0 {
		return errors.New("the request is nested too deeply")
	}
	seen := map[string]bool{}
	for d.More() {
		if open == '{' {
			name, err := d.Token()
			if err != nil {
				return errors.New("the request is not JSON")
			}
			if seen[name.(string)] {
				return fmt.Errorf("the member %q comes twice", name)
			}
			seen[name.(string)] = true
		}
		if err := checkValue(d, depth-1); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return errors.New("the request is not JSON")
	}
	return nil
}
