package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// asks asks a provider one question and returns how many bytes of text came.
type asks func(ctx context.Context, q question) (size int, err error)

// officialOpenAI is OpenAI's own client, streamed or not.
func officialOpenAI(cl *http.Client, url string, streamed bool) asks {
	api := openai.NewChatCompletionService(option.WithBaseURL(url+"/v1"), option.WithHTTPClient(cl), option.WithMaxRetries(0), option.WithAPIKey("none"))
	params := func(q question) openai.ChatCompletionNewParams {
		return openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(q.text())}}
	}
	if !streamed {
		return func(ctx context.Context, q question) (int, error) {
			rsp, err := api.New(ctx, params(q))
			if err != nil {
				return 0, err
			}
			return len(rsp.Choices[0].Message.Content), nil
		}
	}
	return func(ctx context.Context, q question) (int, error) {
		stream := api.NewStreaming(ctx, params(q))
		defer stream.Close()
		var text strings.Builder
		for stream.Next() {
			if chunk := stream.Current(); len(chunk.Choices) > 0 {
				text.WriteString(chunk.Choices[0].Delta.Content)
			}
		}
		return text.Len(), stream.Err()
	}
}

// officialAnthropic is Anthropic's own client, streamed.
func officialAnthropic(cl *http.Client, url string) asks {
	api := anthropic.NewMessageService(anthropicoption.WithBaseURL(url), anthropicoption.WithHTTPClient(cl),
		anthropicoption.WithMaxRetries(0), anthropicoption.WithAPIKey("none"))
	return func(ctx context.Context, q question) (int, error) {
		stream := api.NewStreaming(ctx, anthropic.MessageNewParams{
			Model: "m", MaxTokens: 4096, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(q.text()))},
		})
		defer stream.Close()
		var text strings.Builder
		for stream.Next() {
			text.WriteString(stream.Current().Delta.Text)
		}
		return text.Len(), stream.Err()
	}
}

// lines reads a stream's lines with net/http and decodes none: no reader is
// faster. It returns the size of as many tokens as there were.
func lines(cl *http.Client, url string) asks {
	return func(ctx context.Context, q question) (int, error) {
		rsp, err := openaiAsk(ctx, cl, url, q, true)
		if err != nil {
			return 0, err
		}
		defer rsp.Body.Close()
		n := 0
		all := bufio.NewScanner(rsp.Body)
		for all.Scan() {
			if bytes.HasPrefix(all.Bytes(), []byte("data: ")) {
				n++
			}
		}
		return (n - besidesTokens) * len(token), all.Err()
	}
}

// besidesTokens are the events of a stream in OpenAI's format that have no token.
const besidesTokens = 4

// byAgent asks through an agent of a host, which answers how much it has got.
func byAgent(cl *http.Client, url, how string) asks {
	return func(ctx context.Context, q question) (int, error) {
		raw, err := message(url, bodyOf(how+" "+q.text())).send(ctx, cl)
		if err != nil {
			return 0, err
		}
		want := fmt.Sprintf("%d bytes", q.Tokens*len(token))
		if !bytes.Contains(raw, []byte(want)) {
			return 0, fmt.Errorf("the agent answered %.300q, without %q", raw, want)
		}
		return q.Tokens * len(token), nil
	}
}
