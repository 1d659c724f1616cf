package definition

import (
	"errors"
	"maps"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/model"
)

// maxModels bounds the models that are counted apart: a reload may bring new names. The rest
// is counted as otherModel.
const (
	maxModels  = 100
	otherModel = "other"
)

// modelUse is what the calls of a model have come to.
type modelUse struct {
	requests                       map[string]int64
	input, output, other, microUSD int64
}

// ModelUse is what the calls of a model have come to, by its name in the file.
type ModelUse struct {
	Model string
	// Requests are the calls by their result: ok, or what kind of failure.
	Requests map[string]int64
	// Input and Output are tokens of answers, Reserved those of calls without an answer that may
	// be charged.
	Input, Output, Reserved, MicroUSD int64
}

// count counts a call of a model.
func (p *modelProviders) count(name, result string, usage abi.ChatUsage, cost swarm.Spend) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byModel[name] == nil && len(p.byModel) >= maxModels {
		name = otherModel
	}
	if p.byModel == nil {
		p.byModel = map[string]*modelUse{}
	}
	use := p.byModel[name]
	if use == nil {
		use = &modelUse{requests: map[string]int64{}}
		p.byModel[name] = use
	}
	use.requests[result]++
	use.microUSD += cost.MicroUSD
	if result != resultOK {
		use.other += cost.Tokens
		return
	}
	use.input, use.output = use.input+max(0, usage.InputTokens), use.output+max(0, usage.OutputTokens)
}

// resultOK is the result of a call with an answer, resultGivenUp of one whose turn has ended before.
const (
	resultOK      = "ok"
	resultGivenUp = "given_up"
)

// chatResult names how a call of a model has ended.
func chatResult(err error) string {
	var broken *model.Error
	switch {
	case err == nil:
		return resultOK
	case errors.As(err, &broken):
		return string(broken.Kind)
	}
	return resultGivenUp
}

// uses lists the models that were called, in no order.
func (p *modelProviders) uses() (list []ModelUse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, use := range p.byModel {
		list = append(list, ModelUse{name, maps.Clone(use.requests), use.input, use.output, use.other, use.microUSD})
	}
	return list
}
