import './styles/tokens.css';
import './styles/components.css';
import './styles/app.css';
import { mount } from 'svelte';
import App from './App.svelte';
import { styled } from './styled';

void styled().then(() => mount(App, { target: document.body }));
