/** A map in the order of use: what was put in or used last is youngest. */
import { ChurnMap } from './churn-map.ts';

interface Node<Value> {
  readonly key: string;
  value: Value;
  older: Node<Value> | undefined;
  younger: Node<Value> | undefined;
}

/** Keeps values by key and knows which one was not used for longest. */
export class LruMap<Value> {
  private readonly nodes = new ChurnMap<Node<Value>>();
  private first: Node<Value> | undefined;
  private last: Node<Value> | undefined;

  get size(): number {
    return this.nodes.size;
  }

  /** Looks without using. */
  get(key: string): Value | undefined {
    return this.nodes.get(key)?.value;
  }

  /** The value, which is now the youngest. */
  use(key: string): Value | undefined {
    const node = this.nodes.get(key);
    if (node === undefined) return undefined;
    this.unlink(node);
    this.append(node);
    return node.value;
  }

  /** Puts a value in; it is now the youngest. */
  set(key: string, value: Value): void {
    let node = this.nodes.get(key);
    if (node === undefined) {
      node = { key, value, older: undefined, younger: undefined };
      this.nodes.set(key, node);
    } else {
      node.value = value;
      this.unlink(node);
    }
    this.append(node);
  }

  delete(key: string): boolean {
    const node = this.nodes.get(key);
    if (node === undefined) return false;
    this.unlink(node);
    return this.nodes.delete(key);
  }

  oldest(): readonly [key: string, value: Value] | undefined {
    return this.first && [this.first.key, this.first.value];
  }

  /** All of them, oldest first. */
  entries(): (readonly [key: string, value: Value])[] {
    const found: (readonly [string, Value])[] = [];
    for (let node = this.first; node !== undefined; node = node.younger) {
      found.push([node.key, node.value]);
    }
    return found;
  }

  private append(node: Node<Value>): void {
    node.older = this.last;
    if (this.last === undefined) this.first = node;
    else this.last.younger = node;
    this.last = node;
  }

  /** What is taken out points to nothing any more; see {@link ChurnMap}. */
  private unlink(node: Node<Value>): void {
    if (node.older === undefined) this.first = node.younger;
    else node.older.younger = node.younger;
    if (node.younger === undefined) this.last = node.older;
    else node.younger.older = node.older;
    node.older = undefined;
    node.younger = undefined;
  }
}
