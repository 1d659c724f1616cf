import { fromBase64, toBase64 } from "./base64";
import { Json } from "./json";

/** One HTTP request. encode().text is the request of Op.HTTP_FETCH, for Turn.submit. */
export class FetchRequest {
  /** GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS. */
  method: string = "GET";
  /** An object of strings. */
  headers: Json = Json.object();
  /** A body of text. The JSON of a request is at most 2 MiB. */
  body: string = "";
  /** A body that is not text, in its place. */
  bytes: ArrayBuffer | null = null;

  constructor(
    /** Absolute, http or https. */
    public url: string,
  ) {}

  encode(): Json {
    let v = Json.object().put("method", this.method).put("url", this.url);
    if (this.headers.text != "{}") v = v.set("headers", this.headers);
    const bytes = this.bytes;
    if (bytes !== null) return v.put("body_base64", toBase64(bytes));
    return this.body == "" ? v : v.put("body", this.body);
  }
}

/**
 * The answer to a FetchRequest; any status is one, also 404 and 500. Made of the answer
 * of Op.HTTP_FETCH, for Pending.json.
 */
export class FetchResponse {
  status: i32;
  /** An object of strings; names are in lower case. */
  headers: Json;
  /**
   * The body, empty where it is not UTF-8. It is whole; one of more than 8 MiB, or what
   * the operator's [limits.http] says, is LIMIT.
   */
  body: string;
  private coded: string;

  constructor(answer: Json) {
    this.status = <i32>answer.get("status").asInteger();
    this.headers = answer.get("headers");
    this.body = answer.getString("body");
    this.coded = answer.getString("body_base64");
  }

  /** The body, be it text or not. */
  bytes(): ArrayBuffer {
    return this.coded == "" ? String.UTF8.encode(this.body) : fromBase64(this.coded);
  }
}
