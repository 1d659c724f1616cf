package gen

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"skep/host/internal/gateway/acp/dsl"
	"skep/host/internal/guests"
)

// compiler finds a program of another language. Without it the test is skipped, or fails
// where all languages are required.
func compiler(t testing.TB, name string, check ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil && len(check) > 0 {
		err = exec.CommandContext(t.Context(), path, check...).Run()
	}
	if err != nil && guests.ToolchainsRequired() {
		t.Fatalf("%s: %v", name, err)
	}
	if err != nil {
		t.Skipf("generated code of this language is not tried: %s: %v", name, err)
	}
	return path
}

// switchOn writes a line for each record that a harness reads.
func switchOn(s *dsl.Schema, reserved, line string) string {
	out, names := "", typeNames(s, strings.Fields(reserved)...)
	for _, r := range harnessTypes(s) {
		out += strings.NewReplacer("DECLARED", r.Name, "NAME", names[r], "SNAKE", snake(names[r])).Replace(line) + "\n"
	}
	return out
}

const typescriptHarness = `import { readFileSync } from "node:fs";
import * as m from "./messages.js";

const types = {
%s};
for (const line of readFileSync(0, "latin1").split("\n")) {
  if (line === "") continue;
  const [name, coded] = line.split(" ");
  const [decode, encode, validate] = types[name];
  let answer;
  try {
    const message = decode(new Uint8Array(Buffer.from(coded, "base64")));
    const reason = validate(message);
    answer = reason === undefined ? "+" + Buffer.from(encode(message), "utf8").toString("base64") : "-" + btoa("validate: " + reason);
  } catch (e) {
    if (!(e instanceof m.MessageError)) throw e;
    answer = "-" + Buffer.from(e.message, "utf8").toString("base64");
  }
  console.log(answer);
}
`

// V-A34, V-A38: generated TypeScript compiles, strictly, and answers as the host
// does.
func TestTypeScript(t *testing.T) {
	t.Parallel()
	node := compiler(t, "node")
	tsc, err := filepath.Abs("testdata/typescript/node_modules/.bin/tsc")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tsc); err != nil {
		tsc = compiler(t, "tsc")
	}
	s, dir := load(t, "agreement.acp", agreementText(t)), t.TempDir()
	writeFiles(t, dir, generate(t, "typescript", s))
	lines := switchOn(s, typescriptTypes, "  DECLARED: [m.decodeNAME, m.encodeNAME, m.validateNAME],")
	writeFiles(t, dir, []File{{"package.json", `{"type":"module"}`}, {"harness.js", fmt.Sprintf(typescriptHarness, lines)}})
	command(t, dir, nil, tsc, "--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes", "--noImplicitReturns", "--noImplicitOverride", "--noFallthroughCasesInSwitch",
		"--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler", "--lib", "es2022", "messages.ts")
	checkAnswers(t, samples(), feed(t, samples(), dir, node, "harness.js"))
}

const pythonHarness = `import base64
import sys

import messages as m

types = {
%s}
for line in sys.stdin.buffer:
    name, _, coded = line.decode("ascii").rstrip("\n").partition(" ")
    decode, encode, validate = types[name]
    try:
        message = decode(base64.b64decode(coded))
        validate(message)
        sign, answer = "+", encode(message)
    except m.MessageError as e:
        sign, answer = "-", str(e)
    print(sign + base64.b64encode(answer.encode("utf-8")).decode("ascii"))
`

// V-A34, V-A38: generated Python runs and answers as the host does.
func TestPython(t *testing.T) {
	t.Parallel()
	python := compiler(t, "python3", "-c", "import sys; sys.exit(sys.version_info < (3, 11))")
	s, dir := load(t, "agreement.acp", agreementText(t)), t.TempDir()
	writeFiles(t, dir, generate(t, "python", s))
	lines := switchOn(s, pythonKeywords+" "+pythonTypes, `    "DECLARED": (m.decode_SNAKE, m.encode_SNAKE, m.validate_SNAKE),`)
	writeFiles(t, dir, []File{{"harness.py", fmt.Sprintf(pythonHarness, lines)}})
	checkAnswers(t, samples(), feed(t, samples(), dir, python, "-W", "error", "harness.py"))
}

const javaHarness = `import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import messages.Messages;

public class Harness {
    static String answer(String name, byte[] text) {
        switch (name) {
%s            default:
                throw new IllegalArgumentException(name);
        }
    }

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split(" ", -1);
            String sign = "+", answer;
            try {
                answer = answer(parts[0], Base64.getDecoder().decode(parts[1]));
            } catch (Messages.MessageError e) {
                sign = "-";
                answer = e.getMessage();
            }
            System.out.println(sign + Base64.getEncoder().encodeToString(answer.getBytes(StandardCharsets.UTF_8)));
        }
    }
}
`

// V-A34, V-A38: generated Java compiles without a warning and answers as the host
// does.
func TestJava(t *testing.T) {
	t.Parallel()
	javac, java := compiler(t, "javac"), compiler(t, "java")
	s, dir := load(t, "agreement.acp", agreementText(t)), t.TempDir()
	writeFiles(t, dir, generate(t, "java", s))
	lines := switchOn(s, javaTypes, "            case \"DECLARED\": { var m = Messages.NAME.decode(text); m.validate(); return m.encode(); }")
	writeFiles(t, dir, []File{{"Harness.java", fmt.Sprintf(javaHarness, lines)}})
	command(t, dir, nil, javac, "-J-XX:TieredStopAtLevel=1", "--release", "17", "-Xlint:all", "-Werror", "-encoding", "UTF-8", "-d", "out", "Messages.java", "Harness.java")
	checkAnswers(t, samples(), feed(t, samples(), dir, java, "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp", "out", "Harness"))
}

const rustHarness = `mod messages;

use messages as m;
use std::io::BufRead;

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn from_base64(text: &str) -> Vec<u8> {
    let digits = text.trim_end_matches('=');
    let (mut raw, mut bits) = (Vec::new(), 0u32);
    for (i, c) in digits.bytes().enumerate() {
        bits = bits << 6 | DIGITS.iter().position(|d| *d == c).unwrap() as u32;
        if i %% 4 > 0 {
            raw.push((bits >> (6 - 2 * (i %% 4))) as u8);
        }
    }
    raw
}

fn to_base64(raw: &[u8]) -> String {
    let mut text = String::new();
    for part in raw.chunks(3) {
        let bits = part.iter().fold(0, |bits, b| bits << 8 | u32::from(*b)) << (8 * (3 - part.len()));
        for i in 0..4 {
            text.push(if i <= part.len() { char::from(DIGITS[(bits >> (18 - 6 * i) & 63) as usize]) } else { '=' });
        }
    }
    text
}

fn answer(name: &str, text: &[u8]) -> Result<String, m::MessageError> {
    match name {
%s        _ => panic!("{name}"),
    }
}

fn main() {
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let (name, coded) = line.split_once(' ').unwrap();
        match answer(name, &from_base64(coded)) {
            Ok(text) => println!("+{}", to_base64(text.as_bytes())),
            Err(e) => println!("-{}", to_base64(e.to_string().as_bytes())),
        }
    }
}
`

// V-A34, V-A38: generated Rust compiles without a warning and answers as the host
// does.
func TestRust(t *testing.T) {
	t.Parallel()
	rustc := compiler(t, cmp.Or(os.Getenv("RUSTC"), "rustc"))
	s, dir := load(t, "agreement.acp", agreementText(t)), t.TempDir()
	writeFiles(t, dir, generate(t, "rust", s))
	lines := switchOn(s, rustKeywords+" "+rustTypes, `        "DECLARED" => { let message = m::NAME::decode(text)?; message.validate()?; message.encode() }`)
	writeFiles(t, dir, []File{{"harness.rs", fmt.Sprintf(rustHarness, lines)}})
	command(t, dir, nil, rustc, "--edition", "2021", "-D", "warnings", "-o", "harness", "harness.rs")
	checkAnswers(t, samples(), feed(t, samples(), dir, filepath.Join(dir, "harness")))
}

const scalaHarness = `import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64
import messages._

object Harness {
  def again[T](read: Either[String, T], check: T => Option[String], write: T => Either[String, String]): Either[String, String] =
    read.right.flatMap(t => check(t).map(reason => Left("validate: " + reason): Either[String, String]).getOrElse(write(t)))

  def answer(name: String, text: Array[Byte]): Either[String, String] = name match {
%s  }

  def main(args: Array[String]): Unit =
    for (line <- scala.io.Source.fromInputStream(java.lang.System.in, "US-ASCII").getLines) {
      val Array(name, coded) = line.split(" ", -1)
      val (sign, text) = answer(name, Base64.getDecoder.decode(coded)).fold(("-", _), ("+", _))
      println(sign + Base64.getEncoder.encodeToString(text.getBytes(UTF_8)))
    }
}
`

// V-A34: generated Scala compiles and answers as the host does, and the
// document's own program runs with it and prints its two messages.
func TestScala(t *testing.T) {
	t.Parallel()
	scalac, scala := compiler(t, "scalac", "-version"), compiler(t, "scala", "-version")
	s, dir := load(t, "agreement.acp", agreementText(t)+large()), t.TempDir()
	writeFiles(t, dir, generate(t, "scala", s))
	lines := switchOn(s, scalaTypes, "    case \"DECLARED\" => again[NAME](Messages.decodeNAME(text), Messages.validateNAME, Messages.encodeNAME)")
	program := "import messages._\n" + strings.Replace(readFile(t, "testdata/document.scala"), "import java.time.Instant\n", "import java.time.Instant\nobject Document extends App {\n", 1) + "}\n"
	writeFiles(t, dir, []File{{"Harness.scala", fmt.Sprintf(scalaHarness, lines)}, {"Document.scala", program}})
	command(t, dir, []string{"JAVA_OPTS=-XX:TieredStopAtLevel=1 -Xss8m"}, scalac, "-nowarn", "-encoding", "UTF-8", "-d", ".", "Messages.scala", "Harness.scala", "Document.scala")
	checkAnswers(t, samples(), feed(t, samples(), dir, scala, "-cp", ".", "Harness"))
	cmd := exec.CommandContext(t.Context(), scala, "-cp", ".", "Document")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || !documentOutput.Match(out) {
		t.Errorf("the document's program printed %s, %v", out, err)
	}
}

var documentOutput = regexp.MustCompile(`^Sending: Message\(Header\(1\.0,AgentID\(agentA\),AgentID\(agentB\),REQUEST,MessageID\(msg123\),Timestamp\([^)]*Z\),application/json,None,Some\(conv456\)\),\{"action": "doSomething", "params": \{"param1": "value1"\}\}\)
Sending: Message\(Header\(1\.0,AgentID\(agentB\),AgentID\(agentA\),RESPONSE,MessageID\(msg124\),Timestamp\([^)]*Z\),application/json,Some\(MessageID\(msg123\)\),Some\(conv456\)\),\{"status": "success", "result": "done"\}\)
$`)

// V-A35: the classes made from the document's declarations are the document's own.
func TestDocumentClasses(t *testing.T) {
	t.Parallel()
	classes, _, _ := strings.Cut(generate(t, "scala", load(t, "document.acp", readFile(t, "testdata/document.acp")))[0].Text, "/** Reads, writes")
	if got, want := bare(strings.Replace(classes, "package messages", "", 1)), bare(readFile(t, "testdata/classes.scala")); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

var scalaComment = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)

// bare is code without comments and space.
func bare(code string) string {
	return strings.Join(strings.Fields(scalaComment.ReplaceAllString(code, "")), "")
}
