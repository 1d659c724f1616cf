package model_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/turn/model"
	"skep/host/internal/turn/model/modeltest"
)

func TestPrice(t *testing.T) {
	list := model.Prices{InputPerMTok: 3_000_000, CachedPerMTok: 300_000, CacheWritePerMTok: 3_750_000, OutputPerMTok: 15_000_000}
	for _, c := range []struct {
		name string
		p    model.Prices
		u    abi.ChatUsage
		want int64
	}{
		{"nothing", list, abi.ChatUsage{}, 0},
		{"no prices", model.Prices{}, abi.ChatUsage{InputTokens: 1e9, OutputTokens: 1e9}, 0},
		{"all parts", list, abi.ChatUsage{InputTokens: 1000, CachedTokens: 400, OutputTokens: 100}, 600*3 + 120 + 1500},
		{"rounded up", list, abi.ChatUsage{InputTokens: 1, CachedTokens: 1}, 1},
		{"cached without a price", model.Prices{InputPerMTok: 2_000_000}, abi.ChatUsage{InputTokens: 10, CachedTokens: 10}, 20},
		{"written to the cache", list, abi.ChatUsage{InputTokens: 1000, CachedTokens: 400, CacheWriteTokens: 200, OutputTokens: 100}, 400*3 + 120 + 750 + 1500},
		{"written without a price", model.Prices{InputPerMTok: 2_000_000}, abi.ChatUsage{InputTokens: 10, CacheWriteTokens: 10}, 20},
		{"more written than read", list, abi.ChatUsage{InputTokens: 20, CachedTokens: 10, CacheWriteTokens: 50}, 3 + 38},
		{"more cached than read", list, abi.ChatUsage{InputTokens: 10, CachedTokens: 50}, 3},
		{"negative", list, abi.ChatUsage{InputTokens: -10, CachedTokens: -5, OutputTokens: -1}, 0},
		{"beyond 64 bits", model.Prices{InputPerMTok: math.MaxInt64, OutputPerMTok: math.MaxInt64}, abi.ChatUsage{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64}, math.MaxInt64},
		{"nearly beyond", model.Prices{InputPerMTok: 1_000_000}, abi.ChatUsage{InputTokens: math.MaxInt64}, math.MaxInt64},
	} {
		if got := c.p.Price(c.u); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestPerMTok(t *testing.T) {
	for usd, want := range map[float64]int64{0: 0, 0.1: 100_000, 2.5: 2_500_000, 0.0000004: 0, 1_000_000: 1e12} {
		if got, err := model.PerMTok(usd); err != nil || got != want {
			t.Errorf("%v: %d, %v; want %d", usd, got, err, want)
		}
	}
	for _, usd := range []float64{-1, 1e6 + 1, math.NaN(), math.Inf(1)} {
		if _, err := model.PerMTok(usd); err == nil {
			t.Errorf("%v is taken", usd)
		}
	}
}

// TestEstimate: every byte of the request counts, and the maximum answer.
func TestEstimate(t *testing.T) {
	s := model.Spec{Prices: model.Prices{InputPerMTok: 1e6, OutputPerMTok: 1e6}}
	small := s.Estimate(question)
	if small.OutputTokens != 4096 || small.InputTokens < int64(len("Be brief.What now?")) || small.MicroUSD != small.InputTokens+small.OutputTokens {
		t.Errorf("got %+v", small)
	}
	req := long(json.RawMessage(`"carried"`))
	if got := s.Estimate(req); got.OutputTokens != 100 {
		t.Errorf("the bound of the request is %d", got.OutputTokens)
	}
	s.MaxTokens = 50
	if got := s.Estimate(req); got.OutputTokens != 50 {
		t.Errorf("the bound of the model is %d", got.OutputTokens)
	}
	before := s.Estimate(req).InputTokens
	req.Messages[2].ToolCalls[0].Arguments += strings.Repeat("x", 10)
	req.Messages[2].Carry = append(req.Messages[2].Carry, strings.Repeat(" ", 10)...)
	req.Tools[0].Description += strings.Repeat("x", 10)
	req.Schema = append(req.Schema, strings.Repeat(" ", 10)...)
	if got := s.Estimate(req).InputTokens; got != before+40 {
		t.Errorf("40 bytes more are %d tokens", got-before)
	}
}

// TestEstimateHolds: a request has fewer bytes on the wire than reserved tokens, apart
// from the names of JSON.
func TestEstimateHolds(t *testing.T) {
	for _, provider := range []string{model.OpenAI, model.Anthropic} {
		_, raw := sent(t, provider, long(nil), true)
		if got := (model.Spec{}).Estimate(long(nil)).InputTokens; got < int64(len(raw))*2/3 {
			t.Errorf("%s: %d tokens for %d bytes", provider, got, len(raw))
		}
	}
}

func TestKeyIsNotShown(t *testing.T) {
	w := newWorld(t, model.OpenAI, modeltest.InOrder())
	var b strings.Builder
	slog.New(slog.NewTextHandler(&b, nil)).Info("a model", "spec", w.spec, "key", w.spec.APIKey)
	raw, err := json.Marshal(w.spec)
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%v %+v %#v %s %q %x %s %s", w.spec, w.spec, w.spec, w.spec.APIKey, w.spec.APIKey, w.spec.APIKey, raw, b.String())
	if strings.Contains(shown, key) || strings.Contains(shown, fmt.Sprintf("%x", key)) {
		t.Errorf("shown: %s", shown)
	}
}
