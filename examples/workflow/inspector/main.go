// Command inspector owns four simple looks at a program's text: its structure, its
// security, its performance, and a report of the three. The task_type of a request says
// which. It must not know the workflow that asks.
package main

import (
	"encoding/json"
	"fmt"
	"strings"

	skep "skep/sdk/go"
)

// Inspector is the agent.
type Inspector struct{}

var _ = skep.Run(skep.Descriptor{Name: "inspector", Version: "1.0.0", Description: "Looks at the text of a program."}, Inspector{})

func main() {}

// task is the body of a request.
type task struct {
	Type       string `json:"task_type"`
	Parameters struct {
		Code   string                    `json:"code"`
		Inputs map[string]map[string]any `json:"inputs"`
	} `json:"parameters"`
}

// Turn answers a request for a look.
func (Inspector) Turn(t *skep.Turn) error {
	m := &t.Message
	if m.FromSystem() || m.Type != skep.TypeRequest {
		return nil
	}
	var asked task
	result, err := any(nil), json.Unmarshal([]byte(m.Body), &asked)
	if err == nil {
		result, err = look(asked)
	}
	answer := map[string]any{"status": "completed", "result": result}
	if err != nil {
		answer = map[string]any{"status": "failed", "error": map[string]string{"code": "INVALID_FORMAT", "message": err.Error()}}
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return t.SendResponse(m.Sender.Name, "Re: "+m.Subject, string(body))
}

func look(asked task) (any, error) {
	code := asked.Parameters.Code
	switch asked.Type {
	case "extract_structure":
		return map[string]int{"functions": strings.Count(code, "def "), "lines": strings.Count(code, "\n") + 1}, nil
	case "security_analysis":
		findings := []string{}
		if strings.Contains(code, "eval(") {
			findings = append(findings, "eval of a text")
		}
		return map[string]any{"findings": findings}, nil
	case "performance_analysis":
		return map[string]int{"loops": strings.Count(code, "for ")}, nil
	case "summary_report":
		in := asked.Parameters.Inputs
		findings, _ := in["security"]["findings"].([]any)
		return fmt.Sprintf("%v functions, %d findings, %v loops", in["parse"]["functions"], len(findings), in["performance"]["loops"]), nil
	}
	return nil, fmt.Errorf("task_type is %q", asked.Type)
}
