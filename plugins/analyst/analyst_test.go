package main

import (
	"strings"
	"testing"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

func TestAnswer(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{`how many words and vowels are in "the bees are busy in the skep"`, `"the bees are busy in the skep" has 7 words and 9 vowels`},
		{`How many letters are in “Größe”?`, `"Größe" has 5 letters`},
		{`vowels, consonants, digits: Äpfel 42`, `"Äpfel 42" has 2 vowels, 3 consonants and 2 digits`},
		{`count sentences in "It is 3.5 m. Is it? Yes"`, `"It is 3.5 m. Is it? Yes" has 3 sentences`},
		{`characters in "a b"`, `"a b" has 3 characters`},
		{`the longest word of "a bee hums"`, `in "a bee hums" the longest word is "hums"`},
		{`words and the longest word of "a bee hums"`, `"a bee hums" has 3 words; its longest word is "hums"`},
		{`average word length in "aa bbbb"`, `in "aa bbbb" the words have 3.0 letters on average`},
		{`different words in "bee Bee bees"`, `"bee Bee bees" has 2 different words`},
		{"lines: one\ntwo", "\"one\ntwo\" has 2 lines"},
		{`words in "don't well-known -- 3.5"`, `"don't well-known -- 3.5" has 3 words`},
		{`a bee`, `"a bee" has 2 words, 4 letters, 3 vowels, 1 consonant and 1 sentence`},
		{`what is in "x"`, `"x" has 1 word, 1 letter, 0 vowels, 1 consonant and 1 sentence`},
		{``, `error: there is no text; put it in quotes, as in: how many words are in "the bees are busy"?`},
		{`words in ""`, `error: there is no text; put it in quotes, as in: how many words are in "the bees are busy"?`},
		{`words: ` + strings.Repeat("a", 100), `"` + strings.Repeat("a", 80) + `…" has 1 word`},
	}
	for _, tt := range tests {
		if got := answer(tt.in); got != tt.want {
			t.Errorf("answer(%.60q)\n got %q\nwant %q", tt.in, got, tt.want)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(`how many words and the longest word, average in "a b": c`)
	f.Fuzz(func(t *testing.T, in string) {
		if answer(in) == "" {
			t.Errorf("no answer to %q", in)
		}
	})
}

func TestTurn(t *testing.T) {
	t.Parallel()
	agent := skep.Address{Type: skep.AddressAgent, Name: "supervisor"}
	out := skeptest.Run(Analyst{}, skeptest.Input{Message: skep.Message{Sender: agent, Subject: "s", Body: `words in "a b"`}})
	if len(out.Mail) != 1 || out.Mail[0].Tool != "send_response" || out.Mail[0].Subject != "Re: s" || out.Mail[0].Body != `"a b" has 2 words` {
		t.Errorf("a request: %+v", out.Mail)
	}
	out = skeptest.Run(Analyst{}, skeptest.Input{CanComplete: true, Message: skep.Message{Body: `words in "a b"`}})
	if len(out.Mail) != 1 || out.Mail[0].Finish != `"a b" has 2 words` {
		t.Errorf("a user: %+v", out.Mail)
	}
	out = skeptest.Run(Analyst{}, skeptest.Input{Message: skep.Message{Type: skep.TypeBroadcast, Sender: agent}})
	if len(out.Mail) != 1 || out.Mail[0].Tool != "acknowledge_broadcast" {
		t.Errorf("a broadcast: %+v", out.Mail)
	}
	system := skep.Address{Type: skep.AddressSystem, Name: "hive"}
	out = skeptest.Run(Analyst{}, skeptest.Input{Message: skep.Message{Sender: system, Subject: "::help::"}})
	if len(out.Mail) != 0 || len(out.Logs) != 1 {
		t.Errorf("the system: %+v, %v", out.Mail, out.Logs)
	}
}
