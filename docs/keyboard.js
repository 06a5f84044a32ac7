// Tables, code and formulas that scroll sideways can be reached by the keyboard, and every landmark has a name of its
// own: the theme does neither.
window.addEventListener("load", () => {
  for (const part of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code, math[display=block]"))
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
  document.querySelectorAll(".md-nav .md-nav, .md-code__nav").forEach((part, number) => {
    const name = part.matches(".md-code__nav") ? "Code" : part.querySelector(".md-nav__title")?.textContent.trim();
    part.removeAttribute("aria-labelledby");
    part.setAttribute("aria-label", `${name || "Menu"}, ${number + 1}`);
  });
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
});
