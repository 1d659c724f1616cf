package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"

	skep "skep/sdk/go"
)

// keeps runs the commands that measure, and those that keep bytes.
func keeps(t *skep.Turn, cmd command) string {
	a := cmd.args
	switch cmd.name {
	case "metric":
		return said(metric(t, a))
	case "blob_put":
		return text(t.BlobPut([]byte(a.Text)))
	case "blob_get":
		data, err := t.BlobGet(a.SHA256)
		h := fnv.New32a()
		h.Write(data)
		return text(fmt.Sprint(len(data), " ", sum(h)), err)
	}
	return mail(t, cmd)
}

func metric(t *skep.Turn, a args) error {
	var value float64
	if err := json.Unmarshal(a.Value, &value); err != nil {
		return err
	}
	if a.Kind == "gauge" {
		return t.Gauge(a.Name, value, a.Labels)
	}
	return t.Count(a.Name, value, a.Labels)
}

// begin begins a span. The SDK does not show ids, which count from 1.
func (c *conform) begin(t *skep.Turn, a args) string {
	s, err := t.Span(a.Name, a.Attributes)
	if err != nil {
		return refusal(err)
	}
	c.spans = append(c.spans, s)
	return fmt.Sprint(len(c.spans))
}

// end ends the span of an id.
func (c *conform) end(a args) string {
	var failure error
	if a.Error != "" {
		failure = errors.New(a.Error)
	}
	return said(c.spans[a.ID-1].End(a.Attributes, failure))
}
