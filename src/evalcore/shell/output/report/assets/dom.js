// Elements made of data. Text only ever becomes text nodes and attributes, so nothing that a model, a task or a
// document wrote is ever parsed as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, kind, [first, ...rest]) {
  const plain = first?.constructor === Object;
  for (const [name, value] of Object.entries({ class: kind, ...(plain ? first : {}) })) {
    if (value == null || value === false) continue;
    if (name.startsWith("--")) node.style.setProperty(name, value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  const children = [plain ? null : first, ...rest].flat(Infinity);
  node.append(...children.filter((one) => one != null && one !== false));
  return node;
}

/** An HTML element, such as `el("td.number", { title: "n" }, "12")`; an attribute such as `onclick` takes a function, one such as `--depth` is for styles. */
export function el(tag, ...rest) {
  const [name, kind] = tag.split(".");
  return fill(Object.assign(document.createElement(name), name === "button" && { type: name }), kind, rest);
}

/** An SVG element. */
export function svg(tag, ...rest) {
  const [name, kind] = tag.split(".");
  return fill(document.createElementNS(SVG, name), kind, rest);
}

/** Replace all that is inside a node. */
export function show(node, ...children) {
  node.replaceChildren();
  return fill(node, null, [null, ...children]);
}

/** Show what is worked out; the node is busy meanwhile, and what goes wrong is said in it. */
export async function showLater(node, work) {
  node.setAttribute("aria-busy", "true");
  try {
    await work();
  } catch (error) {
    show(node, el("p", { role: "alert" }, error.message));
  }
  node.removeAttribute("aria-busy");
}

/** What is wider than the page and scrolls, also by keys. */
export function scroll(label, ...children) {
  return el("div.scroll", { tabindex: 0, role: "region", "aria-label": label }, children);
}

/** A button that copies a text, and says that it did. */
export function copyButton(text, label = "copy") {
  const button = el("button.copy", { onclick: copy }, label);
  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = el("textarea", { readonly: true }, text);
      button.after(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "copied";
    setTimeout(() => (button.textContent = label), 1500);
  }
  return button;
}

export const copyRecipe = (recipe) => copyButton(recipe, "copy recipe");

/** A table whose columns hold numbers but for the first ones, `left` of them; a head that is no text is no header. */
export function table(kind, label, caption, heads, left, ...body) {
  const cell = (name, at) => (name?.length ? el("th", { scope: "col", class: at >= left && "number" }, name) : el("td", [name]));
  return scroll(label, el(`table.${kind}`, caption && el("caption", caption), el("thead", el("tr", heads.map(cell))), body));
}

/** A part of a view, under its title. */
export function section(title, note, ...children) {
  return el("section", el("h2", title), note ? el("p.quiet", note) : null, children);
}
