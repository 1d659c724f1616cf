package model

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"

	"skep/abi"
)

// Prices are an operator's, in millionths of a dollar for a million tokens; see
// [PerMTok]. CachedPerMTok and CacheWritePerMTok zero take InputPerMTok.
type Prices struct {
	InputPerMTok, CachedPerMTok, CacheWritePerMTok, OutputPerMTok int64
}

// maxUSD keeps every price of a call far from what 64 bits hold.
const maxUSD = 1_000_000

// PerMTok is a price in dollars for a million tokens as [Prices] has it. Parts
// of a millionth are rounded.
func PerMTok(usd float64) (int64, error) {
	if math.IsNaN(usd) || usd < 0 || usd > maxUSD {
		return 0, fmt.Errorf("a price must be between 0 and %d dollars for a million tokens, not %v", maxUSD, usd)
	}
	return int64(math.Round(usd * 1e6)), nil
}

// Price is what a call costs in millionths of a dollar, rounded up.
func (p Prices) Price(u abi.ChatUsage) int64 {
	input := max(u.InputTokens, 0)
	cached := min(max(u.CachedTokens, 0), input)
	written := min(max(u.CacheWriteTokens, 0), input-cached)
	hi, lo := product(input-cached-written, p.InputPerMTok)
	for _, part := range [][2]int64{
		{cached, cmp.Or(p.CachedPerMTok, p.InputPerMTok)},
		{written, cmp.Or(p.CacheWritePerMTok, p.InputPerMTok)},
		{u.OutputTokens, p.OutputPerMTok},
	} {
		h, l := product(part[0], part[1])
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

func product(tokens, price int64) (hi, lo uint64) {
	return bits.Mul64(uint64(max(tokens, 0)), uint64(max(price, 0)))
}

// What a prompt costs beyond its text: the provider's own words around a
// conversation with tools, a message, a tool and a call.
const (
	tokensPerRequest = 1024
	tokensPerMessage = 32
	tokensPerTool    = 64
)

// Estimate is the most that a call can use: what is to be reserved before it. A
// tokenizer makes at most one token of each byte, so the input counts a token a
// byte; of English text, a call then uses about a quarter. The output is the
// whole bound of the answer.
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
	u := abi.ChatUsage{InputTokens: int64(input), OutputTokens: s.bound(req)}
	u.MicroUSD = s.Prices.dearest().Price(u)
	return u
}

// maxCounted is more tokens than any call has. Budgets and the sums of a day must
// not take the number of a provider or a cassette for more.
const maxCounted = 1_000_000_000

// counted is a usage with its price. Parts are no more than the whole, and of one
// that cannot be true it is what was reserved.
func (s Spec) counted(u abi.ChatUsage, req abi.ChatRequest) abi.ChatUsage {
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

// dearest are the prices of a prompt of which nobody knows yet what is cached.
func (p Prices) dearest() Prices {
	p.InputPerMTok = max(p.InputPerMTok, p.CachedPerMTok, p.CacheWritePerMTok)
	return p
}

// bound is the most tokens that an answer may have.
func (s Spec) bound(req abi.ChatRequest) int64 {
	most := s.MaxTokens
	if most == 0 {
		most = defaultTokens
	}
	if req.MaxTokens > 0 {
		most = min(most, req.MaxTokens)
	}
	return most
}
