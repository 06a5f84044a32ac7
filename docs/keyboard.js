// Tables, code and formulas that scroll sideways can be reached by the keyboard, and the parts of the menu are groups
// of one landmark: the theme does neither.
window.addEventListener("load", () => {
  for (const part of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code, math[display=block]"))
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
  for (const part of document.querySelectorAll(".md-nav .md-nav")) part.setAttribute("role", "group");
});
