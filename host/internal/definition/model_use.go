package definition

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

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
	silent                         SilentModel
}

// SilentModel is a model whose provider has not answered the last calls as one, since a time.
type SilentModel struct {
	// Name is the one in the file.
	Name  string
	Cause string
	Calls int64
	Since time.Time
}

// note notes how a call has ended. One that was not made, or given up here, says nothing new.
func (s *SilentModel) note(name string, err error, now time.Time) {
	var broken *model.Error
	switch failed := errors.As(err, &broken); {
	case err != nil && !failed:
	case failed && broken.Kind == model.Resting:
	case failed && (broken.Kind == model.Unavailable || broken.Kind == model.Overloaded || broken.Kind == model.Auth || broken.Kind == model.Malformed):
		if s.Calls == 0 {
			s.Since = now
		}
		s.Name, s.Cause = name, strings.TrimPrefix(broken.Cause(), "models."+name+": ")
		s.Calls++
	default:
		*s = SilentModel{}
	}
}

// silentModels lists the models that have not answered, by name.
func (p *modelProviders) silentModels() (list []SilentModel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.byModel)) {
		if s := p.byModel[name].silent; s.Calls > 0 {
			list = append(list, s)
		}
	}
	return list
}

// forgetSilence forgets which models have not answered: a new file may have mended them.
func (p *modelProviders) forgetSilence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, use := range p.byModel {
		use.silent = SilentModel{}
	}
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
func (p *modelProviders) count(name string, err error, usage abi.ChatUsage, cost swarm.Spend) {
	result := chatResult(err)
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
	use.silent.note(name, err, time.Now().UTC())
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
