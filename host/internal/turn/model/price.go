package model

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"

	"skep/abi"
)

// Prices are the operator's prices in millionths of a dollar per million tokens; see
// [PerMTok]. If CachedPerMTok or CacheWritePerMTok is zero, InputPerMTok applies.
type Prices struct {
	InputPerMTok, CachedPerMTok, CacheWritePerMTok, OutputPerMTok int64
}

// maxUSD keeps every price of a call far below the limit of 64 bits.
const maxUSD = 1_000_000

// PerMTok converts a price in dollars per million tokens for [Prices]. Parts of a
// millionth are rounded.
func PerMTok(usd float64) (int64, error) {
	if math.IsNaN(usd) || usd < 0 || usd > maxUSD {
		return 0, fmt.Errorf("a price must be between 0 and %d dollars for a million tokens, not %v", maxUSD, usd)
	}
	return int64(math.Round(usd * 1e6)), nil
}

// Price is the price of a call in millionths of a dollar, rounded up.
func (p Prices) Price(u abi.ChatUsage) int64 {
	input := max(u.InputTokens, 0)
	cached := min(max(u.CachedTokens, 0), input)
	written := min(max(u.CacheWriteTokens, 0), input-cached)
	hi, lo := multiply(input-cached-written, p.InputPerMTok)
	for _, part := range [][2]int64{
		{cached, cmp.Or(p.CachedPerMTok, p.InputPerMTok)},
		{written, cmp.Or(p.CacheWritePerMTok, p.InputPerMTok)},
		{u.OutputTokens, p.OutputPerMTok},
	} {
		h, l := multiply(part[0], part[1])
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi, _ = bits.Add64(hi, h, carry)
	}
	lo, carry := bits.Add64(lo, perMillion-1, 0)
	if hi += carry; hi >= perMillion {
		return math.MaxInt64
	}
	price, _ := bits.Div64(hi, lo, perMillion)
	return int64(min(price, math.MaxInt64))
}

const perMillion = 1_000_000

func multiply(tokens, price int64) (hi, lo uint64) {
	return bits.Mul64(uint64(max(tokens, 0)), uint64(max(price, 0)))
}

// Tokens that a prompt costs beyond its text: the provider's own text around a
// conversation with tools, around a message or call, and around a tool.
const (
	tokensPerRequest = 1024
	tokensPerMessage = 32
	tokensPerTool    = 64
)

// Estimate is the most that a call can use, and is reserved before it. A tokenizer makes
// at most one token of each byte, so the input counts one token per byte; a call in
// English uses about a quarter of it. The output is the maximum length of the answer.
func (s Spec) Estimate(req abi.ChatRequest) abi.ChatUsage {
	input := tokensPerRequest + len(req.Schema)
	for _, m := range req.Messages {
		input += tokensPerMessage + len(m.Content) + len(m.Carry) + len(m.ToolCallID)
		for _, c := range m.ToolCalls {
			input += tokensPerMessage + len(c.ID) + len(c.Name) + len(c.Arguments)
		}
	}
	for _, t := range req.Tools {
		input += tokensPerTool + len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	u := abi.ChatUsage{InputTokens: int64(input), OutputTokens: s.maxOutput(req)}
	u.MicroUSD = s.Prices.highestInput().Price(u)
	return u
}

// maxCounted is more tokens than any call has. It keeps a wrong number of a provider or a
// cassette out of budgets and daily sums.
const maxCounted = 1_000_000_000

// settle returns a usage with its price. Parts are limited to the whole, and an impossible
// usage is replaced by the estimate.
func (s Spec) settle(u abi.ChatUsage, req abi.ChatRequest) abi.ChatUsage {
	if u.InputTokens > maxCounted || u.OutputTokens > maxCounted {
		return s.Estimate(req)
	}
	u.InputTokens, u.OutputTokens = max(u.InputTokens, 0), max(u.OutputTokens, 0)
	u.CachedTokens = min(max(u.CachedTokens, 0), u.InputTokens)
	u.CacheWriteTokens = min(max(u.CacheWriteTokens, 0), u.InputTokens-u.CachedTokens)
	u.ReasoningTokens = min(max(u.ReasoningTokens, 0), u.OutputTokens)
	u.MicroUSD = s.Prices.Price(u)
	return u
}

// highestInput returns the prices for a prompt whose cached part is unknown.
func (p Prices) highestInput() Prices {
	p.InputPerMTok = max(p.InputPerMTok, p.CachedPerMTok, p.CacheWritePerMTok)
	return p
}

// maxOutput is the maximum number of tokens in an answer.
func (s Spec) maxOutput(req abi.ChatRequest) int64 {
	most := s.MaxTokens
	if most == 0 {
		most = defaultTokens
	}
	if req.MaxTokens > 0 {
		most = min(most, req.MaxTokens)
	}
	return most
}
