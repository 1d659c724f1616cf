package swarm

import (
	"context"
	"encoding/json"
	"slices"
)

// ModelUse is what turns have used of models.
type ModelUse struct {
	Tokens int64
	// Models are the providers' names, in the order of their first use.
	Models []string
}

// Bounds of the events that are read for a ModelUse: at once, and in all.
const (
	modelUsePage = 100
	maxModelUse  = 1000
)

// ModelUse adds up what the log has of the use of models behind one cursor and up to another. It is zero
// for more than maxModelUse events.
func (r *Runtime) ModelUse(ctx context.Context, key TaskKey, after, upTo int64) (use ModelUse, err error) {
	if upTo-after > maxModelUse {
		return ModelUse{}, nil
	}
	for after < upTo {
		events, err := r.store.Events(ctx, key, after, int(min(modelUsePage, upTo-after)))
		if err != nil {
			return ModelUse{}, err
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			use.add(e)
		}
		after = events[len(events)-1].Seq
	}
	return use, nil
}

// add adds the cost in an event, if it has one; see mutationBuilder.logMessage.
func (u *ModelUse) add(e Event) {
	var extra struct {
		Cost struct {
			Tokens int64    `json:"tokens"`
			Models []string `json:"models"`
		} `json:"cost"`
	}
	if json.Unmarshal(e.Extra, &extra) != nil {
		return // an event without one
	}
	u.Tokens = saturatingAdd(u.Tokens, extra.Cost.Tokens)
	for _, name := range extra.Cost.Models {
		u.Models = addModel(u.Models, name)
	}
}

// maxModels bounds the models that a turn or an answer names.
const maxModels = 8

// UseModel notes a model that the turn calls.
func (t *Turn) UseModel(name string) {
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	t.run.models = addModel(t.run.models, name)
}

// ModelFailure is why calls of a model in a turn have failed, without any content.
type ModelFailure struct {
	// Model is the provider's name of the model.
	Model string `json:"model"`
	// Kind is the kind of the failure, Cause the same in words.
	Kind  string `json:"kind"`
	Cause string `json:"cause"`
	// Count is the number of the calls.
	Count int64 `json:"count"`
}

// NoteModelFailure notes that a call of a model in the turn has failed.
func (t *Turn) NoteModelFailure(why ModelFailure) {
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	t.run.noteModelFailure(why)
}

// noteModelFailure puts a failure last, and counts it with those of its model and kind. The caller holds the
// task's mu.
func (rn *runningTurn) noteModelFailure(why ModelFailure) {
	list := rn.modelFailures
	why.Count = 1
	same := func(has ModelFailure) bool { return has.Model == why.Model && has.Kind == why.Kind }
	if i := slices.IndexFunc(list, same); i >= 0 {
		why.Count += list[i].Count
		list = slices.Delete(list, i, i+1)
	}
	if len(list) < maxModels {
		rn.modelFailures = append(list, why)
	}
}

// addModelFailures counts the calls of models that have failed in a turn, each under its model.
func (mut *mutationBuilder) addModelFailures(rn *runningTurn) {
	for _, why := range rn.modelFailures {
		mut.addCount(UsageKey{Agent: rn.row.Agent, Model: why.Model, Cause: why.Kind}, UsageSum{Failures: why.Count})
	}
}

func addModel(list []string, name string) []string {
	if name == "" || len(list) >= maxModels || slices.Contains(list, name) {
		return list
	}
	return append(list, name)
}

// isMetered reports whether turns of the task have called models.
func (t *activeTask) isMetered() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rec.isMetered()
}

// isMetered reports whether turns of the task have used models.
func (t Task) isMetered() bool { return t.Usage.Spend != (Spend{}) }
