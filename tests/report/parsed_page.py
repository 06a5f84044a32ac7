"""A page as an HTML parser of the standard library sees it."""

from html.parser import HTMLParser


class ParsedPage(HTMLParser):
    """Elements with their attributes, and the text outside scripts and styles."""

    def __init__(self, content):
        super().__init__()
        self.elements, self.text, self._inside = [], "", []
        self.feed(content.decode())
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._inside.append(tag)

    def handle_endtag(self, tag):
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass

    def handle_data(self, text):
        if not {"script", "style"} & set(self._inside):
            self.text += text + " "

    def all(self, tag, **wanted):
        """Attributes of all elements with this tag and these attributes."""
        return [found for name, found in self.elements if name == tag and found.items() >= wanted.items()]
