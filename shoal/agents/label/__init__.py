"""The privacy label: what a deployment promises to whom, as text, as a page and as a record of a public registry."""
