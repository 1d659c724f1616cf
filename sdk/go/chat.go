package skep

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"skep/sdk/go/internal/abi"
)

// ChatRequest is one question to a model: a Model by its name in the operator's
// [models], the Messages so far, the Tools the model may call and, by ToolChoice,
// has to. It encodes as the request of OpLLMChat, so that [Turn.Submit] takes it as
// well.
type ChatRequest = abi.ChatRequest

// ChatMessage is one message of a conversation: a Role and its Content. An
// assistant's has the ToolCalls it made and the Carry that came with them, a tool's
// the ToolCallID that it answers and whether that call ended in an Error.
type ChatMessage = abi.ChatMessage

// ChatTool is one tool that a model may call: a Name, a Description and its
// Parameters as a JSON Schema.
type ChatTool = abi.Tool

// ChatCall is a tool call that a model wants made. Its Arguments are as the model
// wrote them: they may be no JSON.
type ChatCall = abi.ChatCall

// ChatResponse is a model's answer: Text, ToolCalls, or both; why it Finished and
// the Usage. Carry goes back unchanged with the answer's message.
type ChatResponse = abi.ChatResponse

// ChatUsage is what an answer has cost, in tokens and millionths of a dollar.
type ChatUsage = abi.ChatUsage

// ChatPiece is a part of an answer as it comes: a Delta of the text or one of the
// Reasoning.
type ChatPiece = abi.ChatPiece

// Roles of a [ChatMessage].
const (
	RoleSystem    = abi.RoleSystem
	RoleUser      = abi.RoleUser
	RoleAssistant = abi.RoleAssistant
	RoleTool      = abi.RoleTool
)

// Why a model has stopped: at its end, to have tools called, for the bound of its
// answer, or because its provider held the answer back.
const (
	FinishStop      = abi.FinishStop
	FinishToolCalls = abi.FinishToolCalls
	FinishLength    = abi.FinishLength
	FinishFiltered  = abi.FinishFiltered
)

// Chat asks a model and waits for the whole answer. The model must be granted, as
// in allow = { llm = ["default"] }, else it is [Denied]. [Limit]: a budget is used up
// or the question too long. [Unavailable]: the model may answer later.
func (t *Turn) Chat(r ChatRequest) (ChatResponse, error) {
	var rsp ChatResponse
	err := t.Call(OpLLMChat, r, &rsp)
	return rsp, err
}

// ChatStream asks a model and hands on the pieces of its answer as they come. An
// error of each calls the question off. The answer it returns is whole.
func (t *Turn) ChatStream(r ChatRequest, each func(ChatPiece) error) (ChatResponse, error) {
	return t.Submit(OpLLMChat, r).Chat(each)
}

// maxPiece is more than the line of any piece: the last has all tool calls.
const maxPiece = 16 << 20

// Chat reads the answer of OpLLMChat, as [Turn.ChatStream] does, for several
// questions beside each other. It closes p.
func (p *Pending) Chat(each func(ChatPiece) error) (ChatResponse, error) {
	defer func() { _ = p.Close() }() // it never fails
	var text, reasoning strings.Builder
	lines := bufio.NewScanner(p)
	lines.Buffer(nil, maxPiece)
	for lines.Scan() {
		var piece ChatPiece
		if err := json.Unmarshal(lines.Bytes(), &piece); err != nil {
			return ChatResponse{}, fmt.Errorf("%s: answer: %w", OpLLMChat, err)
		}
		text.WriteString(piece.Delta)
		reasoning.WriteString(piece.Reasoning)
		if piece.End != nil {
			piece.End.Text, piece.End.Reasoning = text.String(), reasoning.String()
			return *piece.End, nil
		}
		if each == nil {
			continue
		}
		if err := each(piece); err != nil {
			return ChatResponse{}, err
		}
	}
	if err := lines.Err(); err != nil {
		return ChatResponse{}, err
	}
	return ChatResponse{}, fmt.Errorf("%s: answer: %w", OpLLMChat, io.ErrUnexpectedEOF)
}
